"""Kinds that govern scheduling, Volcano's and Kubernetes': groups, queues, classes, budgets, topology."""

from typing import Annotated, Any, Literal

from msgspec import Meta, field

from stromboli.api.types.meta import (
    Condition,
    Count,
    Int32,
    LabelSelector,
    Object,
    Record,
    ResourceList,
    Value,
)
from stromboli.api.types.pod import PREFERRED, REQUIRED

Mode = Literal["hard", "soft"]
Weight = Annotated[int, Meta(ge=1, le=65535)]
Size = Annotated[int, Meta(ge=1, le=2**31 - 1)]


class NetworkTopology(Value, frozen=True):
    """How far apart in the network a group may lie: by tier number or by tier name."""

    mode: Mode = "hard"
    highest_tier_allowed: Count | None = None
    highest_tier_name: str = ""


class SubGroupPolicy(Value, frozen=True):
    """Splits a group by labels into sub-groups that must fit together."""

    name: str = ""
    label_selector: LabelSelector | None = None
    match_label_keys: tuple[str, ...] = ()
    sub_group_size: Size = 1
    min_sub_groups: Count = 0
    network_topology: NetworkTopology | None = None


class PodGroupSpec(Record):
    """The gang's minimum. Without minResources (None) it is enqueued unconditionally."""

    min_member: Count = 0
    min_task_member: dict[str, Int32] = field(default_factory=dict)
    queue: str = ""
    priority_class_name: str = ""
    min_resources: ResourceList | None = None
    network_topology: NetworkTopology | None = None
    sub_group_policy: tuple[SubGroupPolicy, ...] = ()


class PodGroupStatus(Record):
    phase: Literal["", "Pending", "Running", "Unknown", "Inqueue", "Completed"] = ""
    conditions: tuple[Condition, ...] = ()
    running: Count = 0
    succeeded: Count = 0
    failed: Count = 0


class PodGroup(Object):
    """A job as the scheduler sees it: pods that start together."""

    spec: PodGroupSpec = field(default_factory=PodGroupSpec)
    status: PodGroupStatus = field(default_factory=PodGroupStatus)


class Guarantee(Value, frozen=True):
    """What is reserved for a queue, used or not."""

    resource: ResourceList = field(default_factory=dict)


class NodeGroupAffinity(Value, frozen=True):
    """Names of node groups, required or preferred."""

    required: tuple[str, ...] = field(default=(), name=REQUIRED)
    preferred: tuple[str, ...] = field(default=(), name=PREFERRED)


class QueueAffinity(Value, frozen=True):
    """Node groups that a queue's jobs should use or avoid."""

    node_group_affinity: NodeGroupAffinity | None = None
    node_group_anti_affinity: NodeGroupAffinity | None = None


class QueueSpec(Record):
    weight: Weight = 1
    capability: ResourceList = field(default_factory=dict)
    deserved: ResourceList = field(default_factory=dict)
    guarantee: Guarantee = Guarantee()
    reclaimable: bool | None = None
    parent: str = ""
    priority: Count = 0
    affinity: QueueAffinity | None = None
    dequeue_strategy: Literal["", "fifo", "traverse"] = ""
    extend_clusters: tuple[Any, ...] = ()
    type: str = ""


class QueueStatus(Record):
    state: Literal["", "Open", "Closed", "Closing", "Unknown"] = ""
    allocated: ResourceList = field(default_factory=dict)


class Queue(Object):
    """A share of the cluster, and how much of it may be used."""

    spec: QueueSpec = field(default_factory=QueueSpec)
    status: QueueStatus = field(default_factory=QueueStatus)


class PriorityClass(Object):
    """A name for a priority."""

    value: Int32 = 0
    global_default: bool = False
    preemption_policy: Literal["", "PreemptLowerPriority", "Never"] = ""


class ResourceQuotaSpec(Record):
    hard: ResourceList = field(default_factory=dict)


class ResourceQuotaStatus(Record):
    hard: ResourceList = field(default_factory=dict)
    used: ResourceList = field(default_factory=dict)


class ResourceQuota(Object):
    """What a namespace may use."""

    spec: ResourceQuotaSpec = field(default_factory=ResourceQuotaSpec)
    status: ResourceQuotaStatus = field(default_factory=ResourceQuotaStatus)


class PodDisruptionBudgetSpec(Record):
    selector: LabelSelector | None = None


class PodDisruptionBudgetStatus(Record):
    disruptions_allowed: Int32 = 0
    disrupted_pods: dict[str, Any] = field(default_factory=dict)


class PodDisruptionBudget(Object):
    """How many of some pods may be disrupted."""

    spec: PodDisruptionBudgetSpec = field(default_factory=PodDisruptionBudgetSpec)
    status: PodDisruptionBudgetStatus = field(default_factory=PodDisruptionBudgetStatus)


class ExactMatch(Value, frozen=True):
    name: str = ""


class RegexMatch(Value, frozen=True):
    pattern: str = ""


class MemberSelector(Value, frozen=True):
    """Members by name, by pattern or by labels."""

    exact_match: ExactMatch | None = None
    regex_match: RegexMatch | None = None
    label_match: LabelSelector | None = None

    @property
    def exact_name(self) -> str:
        """The name by which it selects; empty if it selects by something else."""
        return self.exact_match.name if self.exact_match is not None else ""


class HyperNodeMember(Value, frozen=True):
    """Nodes, or a HyperNode, that belong to a HyperNode."""

    type: Literal["Node", "HyperNode"]
    selector: MemberSelector = MemberSelector()


class HyperNodeSpec(Record):
    tier: Count = 0
    tier_name: str = ""
    members: tuple[HyperNodeMember, ...] = ()


class HyperNode(Object):
    """A part of the network; the lower its tier, the closer its nodes."""

    spec: HyperNodeSpec = field(default_factory=HyperNodeSpec)


class Namespace(Object):
    """A namespace, for its labels."""
