"""A scheduler with nodes of its own: it uses no others, or others only if its own do not suffice (spec 05 11.3)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from stromboli.api import names
from stromboli.engine.placement.node_functions import Bools, Check, NodeFilter, Nodes

if TYPE_CHECKING:
    from stromboli.model.cluster import Cluster
    from stromboli.model.task import Task


def own_nodes_only(cluster: Cluster) -> list[NodeFilter]:
    """The filter for all tasks, if there is one. A change of the shard counts as a change of node objects."""

    def checks(task: Task, nodes: Nodes) -> Iterable[Check]:
        shard = cluster.shard
        if shard is not None and shard.strict:
            yield Check(nodes.pick(shard.inside(cluster.columns)), names.NOT_IN_SHARD)

    return [NodeFilter(checks, "sharding", "static")] if cluster.shard is not None else []


def own_nodes_first(cluster: Cluster, candidates: Bools | None) -> list[Bools | None]:
    """The candidates in the groups that are tried in turn: all of them, or the scheduler's own and then the others."""
    shard = cluster.shard
    if shard is None or shard.strict:
        return [candidates]
    inside = shard.inside(cluster.columns)
    if candidates is None:
        return [inside, ~inside]
    return [candidates & inside, candidates & ~inside]
