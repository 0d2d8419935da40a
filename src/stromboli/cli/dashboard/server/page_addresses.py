"""Addresses of pages, as browsers send them: which route, which objects, which query."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Generic, NamedTuple, Protocol, TypeVar
from urllib.parse import parse_qsl, unquote, urlsplit

from stromboli.api.name_rules import dns_subdomain_errors

LONGEST_ADDRESS = 4096
"""Characters of an address, before it is decoded."""
MOST_PARAMETERS = 30
LONGEST_VALUE = 500
"""Characters of a value in the query."""


class Routed(Protocol):
    @property
    def pattern(self) -> str: ...


Route = TypeVar("Route", bound=Routed)


class Destination(NamedTuple, Generic[Route]):
    """What an address leads to."""

    route: Route
    path: str
    names: Mapping[str, str]
    query: Mapping[str, str]


class AddressBook(Generic[Route]):
    """The routes, found by addresses."""

    def __init__(self, routes: Iterable[Route]) -> None:
        self._routes = [(re.compile(_expression(route.pattern)), route) for route in routes]

    def find(self, address: str) -> Destination[Route] | None:
        """What an address leads to; None if that is nothing."""
        if len(address) > LONGEST_ADDRESS or not address.startswith("/"):
            return None
        try:
            parts = urlsplit(address)
            given = parse_qsl(parts.query, max_num_fields=MOST_PARAMETERS)
        except ValueError:
            return None
        query = {name: value for name, value in given if value}
        if any(len(value) > LONGEST_VALUE for value in query.values()):
            return None
        for expression, route in self._routes:
            match = expression.fullmatch(parts.path)
            if match is None:
                continue
            names = {key: unquote(value) for key, value in match.groupdict().items()}
            if not any(dns_subdomain_errors(name) for name in names.values()):
                return Destination(route, parts.path, names, query)
        return None


def _expression(pattern: str) -> str:
    """The regular expression of a pattern such as `/jobs/{namespace}/{name}`."""
    parts = re.split(r"\{(\w+)\}", pattern)
    return "".join(f"(?P<{part}>[^/]+)" if place % 2 else re.escape(part) for place, part in enumerate(parts))
