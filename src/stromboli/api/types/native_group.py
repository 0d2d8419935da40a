"""Kubernetes' own groups (`scheduling.k8s.io`), in the shapes of 1.36 (v1alpha2) and 1.37 (v1beta1, v1alpha3).

A group has a copy of all that its Workload's template says. So neither Workloads nor the reference to them, which
changed its name between the two versions, are read.
"""

from typing import Literal

from msgspec import field

from stromboli.api import names
from stromboli.api.types.meta import Condition, Int32, Int64, Object, ObjectMeta, Record, Value
from stromboli.api.types.pod import PodResourceClaim, ResourceClaimStatus
from stromboli.api.types.scheduling import Size


class Empty(Value, frozen=True):
    """An object without fields; its presence selects a mode."""


class GangPolicy(Value, frozen=True):
    """At least so many pods start together, or none."""

    min_count: Size = 1


class SchedulingPolicy(Value, frozen=True):
    """Pods by themselves, or a gang."""

    basic: Empty | None = None
    gang: GangPolicy | None = None


class DisruptionMode(Value, frozen=True):
    """Whether pods may be evicted one by one or only all together, as 1.37 writes it."""

    single: Empty | None = None
    all: Empty | None = None


class TopologyConstraint(Value, frozen=True):
    """A label whose value all nodes of the group must share."""

    key: str = ""


class SchedulingConstraints(Value, frozen=True):
    """Where the pods of the group may be; API servers allow one topology at most."""

    topology: tuple[TopologyConstraint, ...] = ()


class NativeMeta(ObjectMeta):
    """With the generation, which conditions refer to."""

    generation: Int64 = 0


class NativePodGroupSpec(Record):
    """Gang or not, its priority, and how it may be disrupted."""

    scheduling_policy: SchedulingPolicy = SchedulingPolicy()
    scheduling_constraints: SchedulingConstraints = SchedulingConstraints()
    disruption_mode: Literal["", "Pod", "PodGroup"] | DisruptionMode = ""
    priority: Int32 | None = None
    priority_class_name: str = ""
    preemption_policy: Literal["", "PreemptLowerPriority", "Never"] = ""
    parent_composite_pod_group_name: str = ""
    resource_claims: tuple[PodResourceClaim, ...] = ()


class NativePodGroupStatus(Record):
    conditions: tuple[Condition, ...] = ()
    resource_claim_statuses: tuple[ResourceClaimStatus, ...] = ()


class NativePodGroup(Object):
    """A PodGroup of Kubernetes itself; pods name it in `spec.schedulingGroup`."""

    metadata: NativeMeta
    api_version: str = ""
    """As it was read, if known; conditions have other names in other versions."""
    spec: NativePodGroupSpec = field(default_factory=NativePodGroupSpec)
    status: NativePodGroupStatus = field(default_factory=NativePodGroupStatus)

    @property
    def minimum(self) -> int:
        gang = self.spec.scheduling_policy.gang
        return gang.min_count if gang is not None else 1

    @property
    def independent(self) -> bool:
        """Whether each pod is scheduled by itself."""
        return self.spec.scheduling_policy.gang is None

    @property
    def disrupted_as_group(self) -> bool:
        """Whether all of its pods are evicted if one is."""
        mode = self.spec.disruption_mode
        return mode.all is not None if isinstance(mode, DisruptionMode) else mode == "PodGroup"

    @property
    def topology_key(self) -> str:
        """The label whose value the nodes of all its pods must share; empty if it asks for none."""
        constraints = self.spec.scheduling_constraints.topology
        return constraints[0].key if constraints else ""


def condition_type(api_version: str) -> str:
    """The type of the condition that says whether a group was scheduled."""
    old = api_version.rpartition("/")[2] in ("", "v1alpha1", "v1alpha2")
    return names.CONDITION_GROUP_SCHEDULED if old else names.CONDITION_GROUP_INITIALLY_SCHEDULED
