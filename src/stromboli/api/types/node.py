"""A node, and the volumes that its CSI drivers can attach."""

from msgspec import field

from stromboli.api.types.meta import Condition, Count, Int64, Object, Record, ResourceList, Value


class Taint(Value, frozen=True):
    """Repels pods that do not tolerate it."""

    key: str = ""
    value: str = ""
    effect: str = ""


class NodeSpec(Record):
    taints: tuple[Taint, ...] = ()
    unschedulable: bool = False


class NodeImage(Value, frozen=True):
    """An image that the node already has, under all its names."""

    names: tuple[str, ...] = ()
    size_bytes: Int64 = 0


class NodeStatus(Record):
    allocatable: ResourceList = field(default_factory=dict)
    capacity: ResourceList = field(default_factory=dict)
    conditions: tuple[Condition, ...] = ()
    images: tuple[NodeImage, ...] = ()


class Node(Object):
    """One node: its resources, its taints, its images."""

    spec: NodeSpec = field(default_factory=NodeSpec)
    status: NodeStatus = field(default_factory=NodeStatus)


class AttachLimit(Value, frozen=True):
    """How many volumes may be attached; None is no limit."""

    count: Count | None = None


class NodeDriver(Value, frozen=True):
    """A CSI driver on the node."""

    name: str = ""
    topology_keys: tuple[str, ...] | None = None
    """The labels that say from where its volumes can be reached."""
    allocatable: AttachLimit | None = None


class CSINodeSpec(Record):
    drivers: tuple[NodeDriver, ...] = ()


class CSINode(Object):
    """The CSI drivers of the node of the same name."""

    spec: CSINodeSpec = field(default_factory=CSINodeSpec)
