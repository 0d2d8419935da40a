"""How several schedulers divide the nodes of a cluster among them (spec 05 15.9)."""

from msgspec import field

from stromboli.api.types.meta import Object, Record


class NodeShardSpec(Record):
    nodes_desired: tuple[str, ...] = ()
    """The nodes that a scheduler should have."""


class NodeShardStatus(Record):
    nodes_in_use: tuple[str, ...] = ()
    nodes_to_add: tuple[str, ...] = ()
    nodes_to_remove: tuple[str, ...] = ()


class NodeShard(Object):
    """The nodes of one scheduler."""

    spec: NodeShardSpec = field(default_factory=NodeShardSpec)
    status: NodeShardStatus = field(default_factory=NodeShardStatus)
