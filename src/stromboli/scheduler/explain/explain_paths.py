"""Paths of questions to the leader: `/explain/podgroups/default/train`, `/explain/nodes/n1`, `/explain/cycles`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple
from urllib.parse import quote, unquote

from stromboli.api.name_rules import dns_subdomain_errors

PREFIX = "/explain/"
CYCLES = f"{PREFIX}cycles"
POLICY = f"{PREFIX}policy"
BAD_PATH = (
    f"unknown path; valid paths: {PREFIX}podgroups/NAMESPACE/NAME, {PREFIX}jobs/NAMESPACE/NAME,"
    f" {PREFIX}pods/NAMESPACE/NAME, {PREFIX}queues/NAME, {PREFIX}nodes/NAME, {CYCLES} and {POLICY}"
)
BAD_CYCLE_QUERY = f"{CYCLES} accepts only ?after=NUMBER and limit=NUMBER, which must be non-negative integers"
NOT_SEEN = "unknown to the scheduler"
"""The end of the message for unknown objects, to distinguish it from a 404 of an API server without this path."""
NO_PATH_PERMISSION = "grant access with a ClusterRole that has nonResourceURLs"
"""The end of the message for missing permissions, to distinguish it from a 403 of an API server without this path."""
MAX_PATH = 1024
"""Characters of a path, before it is decoded."""
_MAX_DIGITS = 15
"""Digits of a number in a query."""


class ExplainedResource(NamedTuple):
    """A kind of objects that can be explained."""

    group: str
    plural: str
    namespaced: bool = True


RESOURCES = {
    "jobs": ExplainedResource("batch.volcano.sh", "jobs"),
    "podgroups": ExplainedResource("scheduling.volcano.sh", "podgroups"),
    "podgroups.scheduling.k8s.io": ExplainedResource("scheduling.k8s.io", "podgroups"),
    "pods": ExplainedResource("", "pods"),
    "queues": ExplainedResource("scheduling.volcano.sh", "queues", namespaced=False),
    "nodes": ExplainedResource("", "nodes", namespaced=False),
}
"""By their names in paths: the resource, with its group where two groups have it."""
NAMED_IN_CYCLES = (RESOURCES["pods"], RESOURCES["podgroups"])
"""The kinds of objects that cycles name: reading cycles needs permission to list all of these."""


class Question(NamedTuple):
    """The object to explain."""

    resource: str
    """One of `RESOURCES`."""
    namespace: str
    """Empty for objects without a namespace."""
    name: str

    @property
    def path(self) -> str:
        parts = (self.resource, self.namespace, self.name)
        return PREFIX + "/".join(quote(part, safe="") for part in parts if part)

    @property
    def kind(self) -> ExplainedResource:
        return RESOURCES[self.resource]

    @property
    def not_found(self) -> str:
        """The message if the scheduler does not know the object, similar to that of Kubernetes."""
        kind = self.kind
        return f'{kind.plural}{f".{kind.group}" if kind.group else ""} "{self.name}" not found: {NOT_SEEN}'


def parse_path(raw_path: str) -> Question | None:
    """The question in a path as it was sent; None if the path is invalid."""
    if not raw_path.startswith(PREFIX) or len(raw_path) > MAX_PATH:
        return None
    parts = [unquote(part) for part in raw_path.removeprefix(PREFIX).split("/")]
    kind = RESOURCES.get(parts[0])
    if kind is None or len(parts) != (3 if kind.namespaced else 2):
        return None
    if any(dns_subdomain_errors(part) for part in parts[1:]):
        return None
    return Question(parts[0], parts[1] if kind.namespaced else "", parts[-1])


class CycleQuery(NamedTuple):
    """Which cycles to report."""

    after: int = 0
    """Only cycles after the one with this number."""
    limit: int = 0
    """Only so many of the newest entries; 0: all."""

    @property
    def path(self) -> str:
        given = [f"{key}={number}" for key, number in self._asdict().items() if number]
        return CYCLES + ("?" + "&".join(given) if given else "")


def parse_cycle_query(query: Mapping[str, str]) -> CycleQuery | None:
    """The parsed query for cycles; None if it is invalid."""
    if not query.keys() <= set(CycleQuery._fields):
        return None
    if not all(text.isascii() and text.isdecimal() and len(text) <= _MAX_DIGITS for text in query.values()):
        return None
    return CycleQuery(**{key: int(text) for key, text in query.items()})
