"""Records for a viewer who may not see the whole cluster: what he may not list is in no record and in no sum.

They begin as a copy of the visible records of the whole cluster, and follow it from then on. Records are shared, and
nothing is read from the API server again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from stromboli.cli.live import cluster_records
from stromboli.cli.live.cluster_records import ClusterRecords, Record

NAMESPACED = (cluster_records.PODS, cluster_records.GROUPS, cluster_records.JOBS, cluster_records.EVENTS)
CLUSTER_WIDE = (cluster_records.NODES, cluster_records.QUEUES, cluster_records.HYPER_NODES)
Namespaces = frozenset[str] | None
"""Those in which a kind may be listed; None for all."""
NONE: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Visibility:
    """What a viewer may list."""

    namespaces: Mapping[str, Namespaces] = field(default_factory=dict)
    """By kind, of those in namespaces; a kind that is missing may be listed everywhere."""
    hidden: frozenset[str] = NONE
    """Kinds in no namespace that may not be listed."""
    is_partial: bool = False
    """Whether there are namespaces about which nobody asked; how many is not for him to know."""

    def sees(self, kind: str, key: str) -> bool:
        """Whether a record is visible; `key` is `namespace/name`, or a name."""
        if kind in CLUSTER_WIDE:
            return kind not in self.hidden
        allowed = self.namespaces.get(kind)
        return allowed is None or key.partition("/")[0] in allowed

    @property
    def unlisted(self) -> list[str]:
        """Kinds of which nothing may be listed."""
        nowhere = (kind for kind, allowed in self.namespaces.items() if allowed is not None and not allowed)
        return [*sorted(self.hidden), *nowhere]

    @property
    def is_complete(self) -> bool:
        return not self.hidden and all(allowed is None for allowed in self.namespaces.values())

    @property
    def key(self) -> str:
        """The same for those who see the same."""
        listed = {
            kind: "*" if allowed is None else ",".join(sorted(allowed))
            for kind, allowed in sorted(self.namespaces.items())
        }
        return f"{sorted(self.hidden)} {listed} {self.is_partial}"


EVERYTHING = Visibility()


class VisibleRecords(ClusterRecords):
    """The records of a cluster that are visible to somebody."""

    def __init__(self, whole: ClusterRecords, visibility: Visibility) -> None:
        super().__init__()
        self._whole = whole
        self.visibility = visibility
        tables: dict[str, Mapping[str, Any]] = {
            cluster_records.PODS: whole.pods,
            cluster_records.GROUPS: whole.groups,
            cluster_records.JOBS: whole.jobs,
            cluster_records.NODES: whole.nodes,
            cluster_records.QUEUES: whole.queues,
            cluster_records.HYPER_NODES: whole.hyper_nodes,
        }
        for kind, table in tables.items():
            for key, record in table.items():
                self.follow(kind, key, record)
        self.tells_news = whole.tells_news
        whole.followers.append(self)

    def follow(self, kind: str, key: str, record: Record | None) -> None:
        if self.visibility.sees(kind, key):
            self.set_record(kind, key, record)

    def stop(self) -> None:
        """Follow no longer."""
        self._whole.followers.remove(self)
