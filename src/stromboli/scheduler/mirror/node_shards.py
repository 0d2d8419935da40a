"""Our share of the nodes by NodeShards: those our shard desires and no other still uses (spec 05 11.3).

The shard changes only between cycles, so a node that moves to another shard is released after the cycle that used it.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable

from stromboli.api.types.node_shard import NodeShard
from stromboli.engine.decisions import Decision, ShardStatus
from stromboli.model.cluster import Cluster
from stromboli.model.shard import Shard

log = logging.getLogger(__name__)


class NodeShards:
    """Keeps the cluster's shard in step with NodeShards, and writes which nodes we use."""

    def __init__(self, name: str, strict: bool):
        self._name = name
        self._strict = strict
        self._seen: list[NodeShard] | None = None
        self._warned = False

    def refresh(self, cluster: Cluster) -> list[Decision]:
        """Apply changes; the status to be written, if any."""
        shards = list(cluster.objects.node_shards.values())
        if shards == self._seen:
            return []
        self._seen = shards
        if cluster.shard is None:
            cluster.set_shard(Shard((), self._strict))
        own = cluster.objects.node_shards.get(self._name)
        if own is None:
            if not self._warned:
                log.warning(
                    "there is no NodeShard %r, so its nodes stay as they were; see --scheduler-sharding-name",
                    self._name,
                )
            self._warned = True
            return []
        self._warned = False
        usable = usable_nodes(own, shards)
        cluster.set_shard(Shard(usable, self._strict))
        return list(_status(own, usable))


def usable_nodes(own: NodeShard, shards: Iterable[NodeShard]) -> frozenset[str]:
    taken = {name for shard in shards if shard is not own for name in shard.status.nodes_in_use}
    return frozenset(name for name in own.spec.nodes_desired if name not in taken)


def _status(own: NodeShard, usable: Collection[str]) -> Iterable[Decision]:
    desired, current = own.spec.nodes_desired, own.status
    added = [name for name in dict.fromkeys(desired) if name not in usable]
    removed: list[str] = sorted(set(usable).difference(desired))
    before = [set(nodes) for nodes in (current.nodes_in_use, current.nodes_to_add, current.nodes_to_remove)]
    if before != [set(usable), set(added), set(removed)]:
        yield ShardStatus(own.name, tuple(sorted(usable)), tuple(added), tuple(removed))
