"""The CPUs of a node, as an exporter on the node tells them (spec 05 15.7)."""

from msgspec import field

from stromboli.api.types.meta import Object, Record, ResourceList, Value


class CpuDetail(Value, frozen=True):
    """The NUMA node, socket and core that a CPU belongs to."""

    numa: int = 0
    socket: int = 0
    core: int = 0


class NumaResource(Value, frozen=True):
    """What may be allocated of one resource; of CPUs, a set such as `0-3,8`."""

    allocatable: str = ""


class PodAllocation(Value, frozen=True):
    """A pod that the kubelet has given its CPUs to: named by its uid, or by namespace and name."""

    uid: str = ""
    name: str = ""
    namespace: str = ""


class NumatopologySpec(Record):
    policies: dict[str, str] = field(default_factory=dict)
    res_reserved: ResourceList = field(default_factory=dict)
    numares: dict[str, NumaResource] = field(default_factory=dict)
    cpu_detail: dict[str, CpuDetail] = field(default_factory=dict)
    pod_allocations: tuple[PodAllocation, ...] = ()


class Numatopology(Object):
    """The CPUs of the node of the same name."""

    spec: NumatopologySpec = field(default_factory=NumatopologySpec)
