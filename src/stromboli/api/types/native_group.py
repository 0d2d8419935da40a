"""Kubernetes' own groups (`scheduling.k8s.io`), in the shapes of 1.36 (v1alpha2) and 1.37 (v1beta1, v1alpha3).

A group carries a copy of all that its Workload's template says, and must: so Workloads, and the reference to them that
changed its name between the two, are never read.
"""

from typing import Literal

from msgspec import field

from stromboli.api import names
from stromboli.api.types.meta import Condition, Int32, Int64, Object, ObjectMeta, Record, Value
from stromboli.api.types.scheduling import Size


class Plain(Value, frozen=True):
    """One of several ways, chosen by being there."""


class GangPolicy(Value, frozen=True):
    """So many pods start together, or none."""

    min_count: Size = 1


class SchedulingPolicy(Value, frozen=True):
    """Pods by themselves, or a gang."""

    basic: Plain | None = None
    gang: GangPolicy | None = None


class DisruptionMode(Value, frozen=True):
    """Whether pods may be taken away one by one or only all together, as 1.37 writes it."""

    single: Plain | None = None
    all: Plain | None = None


class TopologyConstraint(Value, frozen=True):
    """A label whose value all nodes of the group must share."""

    key: str = ""


class SchedulingConstraints(Value, frozen=True):
    topology: tuple[TopologyConstraint, ...] = ()


class NativeMeta(ObjectMeta):
    """A condition says of which generation of its object it speaks."""

    generation: Int64 = 0


class NativePodGroupSpec(Record):
    """Whether it is a gang, how urgent it is, and how it may be disturbed."""

    scheduling_policy: SchedulingPolicy = SchedulingPolicy()
    scheduling_constraints: SchedulingConstraints = SchedulingConstraints()
    disruption_mode: Literal["", "Pod", "PodGroup"] | DisruptionMode = ""
    priority: Int32 | None = None
    priority_class_name: str = ""
    preemption_policy: Literal["", "PreemptLowerPriority", "Never"] = ""
    parent_composite_pod_group_name: str = ""


class NativePodGroupStatus(Record):
    conditions: tuple[Condition, ...] = ()


class NativePodGroup(Object):
    """A PodGroup of Kubernetes itself; pods name it in `spec.schedulingGroup`."""

    metadata: NativeMeta
    api_version: str = ""
    """As it was read, where that was told; conditions have other names in other versions."""
    spec: NativePodGroupSpec = field(default_factory=NativePodGroupSpec)
    status: NativePodGroupStatus = field(default_factory=NativePodGroupStatus)

    @property
    def minimum(self) -> int:
        gang = self.spec.scheduling_policy.gang
        return gang.min_count if gang is not None else 1

    @property
    def independent(self) -> bool:
        """Whether each pod is for itself."""
        return self.spec.scheduling_policy.gang is None

    @property
    def disrupted_as_group(self) -> bool:
        """Whether all of its pods go if one does."""
        mode = self.spec.disruption_mode
        return mode.all is not None if isinstance(mode, DisruptionMode) else mode == "PodGroup"


def condition_type(api_version: str) -> str:
    """What the condition is called that says whether a group was scheduled."""
    old = api_version.rpartition("/")[2] in ("", "v1alpha1", "v1alpha2")
    return names.CONDITION_GROUP_SCHEDULED if old else names.CONDITION_GROUP_INITIALLY_SCHEDULED
