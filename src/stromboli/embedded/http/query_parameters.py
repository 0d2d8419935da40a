"""Query parameters that are flags or numbers."""

from __future__ import annotations

from collections.abc import Mapping

from stromboli.embedded.kinds.status_errors import bad_request

Query = Mapping[str, str]

_TRUE = ("1", "t", "T", "true", "TRUE", "True")
_MOST_DIGITS = 18


def read_flag(query: Query, name: str) -> bool:
    return query.get(name, "") in _TRUE


def read_number(query: Query, name: str) -> int | None:
    """None if the parameter is missing or empty."""
    text = query.get(name, "")
    if not text:
        return None
    if not text.isdecimal() or len(text) > _MOST_DIGITS:
        raise bad_request(f'{name}: Invalid value: "{text[:100]}": must be a number, at least 0')
    return int(text)
