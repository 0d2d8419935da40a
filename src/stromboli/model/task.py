"""A task: one pod, as the scheduler sees it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from stromboli.model.status import Status

if TYPE_CHECKING:
    from stromboli.model.amounts import Amounts
    from stromboli.model.devices.pod_claims import PodClaim
    from stromboli.model.job import Job, SubJob
    from stromboli.model.ledgers import Grant
    from stromboli.model.node_columns import Node
    from stromboli.model.requirements.placement_requirement import Demand
    from stromboli.model.shape import LabelSet, Shape
    from stromboli.model.volumes.volume_claims import ClaimName


class Condition(NamedTuple):
    """A pod's PodScheduled condition, or a PodGroup's of some type, as last read or written."""

    status: str
    """`True`, `False` or `Unknown`, as in Kubernetes."""
    reason: str
    """One word for programs, such as `Unschedulable`."""
    message: str
    """A sentence for users."""


PROGRESS = ("assumed", "condition", "scheduled_at", "started")
"""Fields of a task that change as its pod makes progress, and from which nothing in the model is derived."""
_NO_ANNOTATIONS: dict[str, str] = {}


@dataclass(slots=True, eq=False, repr=False)
class Task:
    """One pod: its identity, its request (`shape`), and its status and node, which only `Cluster.move` changes."""

    uid: str
    """The pod's uid: unique, even among successive pods of the same name."""
    namespace: str
    """The namespace of its pod."""
    name: str
    """The name of its pod."""
    shape: Shape
    """Everything that filters and scores may read of its pod, shared by all replicas."""
    label_set: LabelSet
    """Its pod's labels and namespace, shared by all pods with equal ones: `task.label_set.labels`."""
    created: float
    """When its pod was created, in seconds since 1970."""
    job: Job | None = None
    """The job it belongs to; none for pods of other schedulers, which only use resources."""
    sub_job: SubJob | None = None
    """The sub-group of its job that it belongs to."""
    status: Status = Status.PENDING
    """Its status; only moves change it, so use a statement."""
    node: Node | None = None
    """The node that it is on or pipelined to; only moves change it."""
    grants: tuple[Grant, ...] = ()
    """What it holds on its node besides amounts; only moves change it."""
    volume_claims: tuple[ClaimName, ...] = ()
    """The volume claims of its pod, each once."""
    attaches: bool = False
    """Whether a node has to attach a volume of a CSI driver for it."""
    annotations: dict[str, str] = field(default_factory=lambda: _NO_ANNOTATIONS)
    """Its pod's annotations, shared with other pods: never change them."""
    role: str = ""
    """Its task in the Job's spec, such as `worker` (the annotation `volcano.sh/task-spec`)."""
    priority: int = 1
    """Its pod's priority, or that of the annotation `volcano.sh/task-priority`; higher is more important."""
    priority_class: str = ""
    """The name of its pod's priority class."""
    preemptable: bool = True
    """Whether it may be evicted for other tasks (`volcano.sh/preemptable`)."""
    preempts: bool = True
    """Whether it may preempt (preemptionPolicy is not Never)."""
    zone: str = ""
    """`*` if it may run on nodes of revocable zones (`volcano.sh/revocable-zone`), else empty."""
    gates: tuple[str, ...] = ()
    """Scheduling gates that hold its pod; such a task is not placed."""
    ours: bool = True
    """Whether its pod names this scheduler; if not, it only uses resources."""
    owner: tuple[str, str] | None = None
    """Kind and name of the pod's controlling owner, such as `("ReplicaSet", "web-5d4")`."""
    terminating: bool = False
    """Whether its pod is being deleted already."""
    assumed: Status | None = None
    """A decision that its pod does not show yet: Releasing if evicted, Binding if deleted while being bound."""
    preempted: bool = False
    """It is terminating because a scheduler preempted it."""
    pod_priority: int = 0
    """The priority of its pod, without annotations."""
    nominated: str = ""
    """The name of the node that was cleared for it in an earlier cycle (`status.nominatedNodeName`)."""
    scheduled_at: float | None = None
    """When it was bound, by its PodScheduled condition, in seconds since 1970."""
    time_limit: float | None = None
    """Seconds that its pod runs at most, by its annotation `stromboli.sh/time-limit`; none without one."""
    deadline: float | None = None
    """Seconds after which its node stops its pod (`activeDeadlineSeconds`); none without one."""
    started: float | None = None
    """When its pod started (`status.startTime`), in seconds since 1970."""
    condition: Condition | None = None
    claims: tuple[PodClaim, ...] = ()
    """The ResourceClaims of its pod."""
    extended_claim: str = ""
    """The name of the ResourceClaim that was made for extended resources of its pod; empty if none was."""
    demands: tuple[Demand, ...] = ()
    """What its pod requires of its placement and only a plugin can honour."""
    _order: tuple[int, int, float, str] | None = None
    """Computed on first use: for most tasks, which run, it is never needed."""

    @property
    def order(self) -> tuple[int, int, float, str]:
        """The order among tasks of equal priority: by replica number, creation time and uid."""
        if self._order is None:
            self._order = (*_index(self.name), self.created, self.uid)
        return self._order

    @property
    def key(self) -> str:
        """`namespace/name` of its pod, as messages to users name it."""
        return f"{self.namespace}/{self.name}"

    @property
    def may_preempt(self) -> bool:
        """Whether both it and its group allow it to preempt."""
        return self.preempts and (self.job is None or self.job.preempts)

    def outranks(self, other: Task) -> bool:
        """Whether it has a higher priority: between jobs the jobs' priorities count, within one the tasks' own."""
        if self.job is None or other.job is None:
            return False
        if other.job is self.job:
            return other.priority < self.priority
        return other.job.priority < self.job.priority

    @property
    def running_since(self) -> float:
        """When its pod started, else when it was bound, else when it was created."""
        if self.started is not None:
            return self.started
        return self.created if self.scheduled_at is None else self.scheduled_at

    @property
    def request(self) -> Amounts:
        """What its pod requests; never change it, as all replicas share it."""
        return self.shape.request

    @property
    def dims(self) -> tuple[int, ...]:
        """The dimensions of a fit test: cpu and memory always, others only if its pod names them."""
        return self.shape.dims

    @property
    def best_effort(self) -> bool:
        """Whether its pod requests nothing, so that `backfill` places it and not `allocate`."""
        # quirk: spec 01 2.2, a volume that has to be attached is a request
        return self.shape.best_effort and not self.attaches

    @property
    def in_view(self) -> bool:
        """Whether Kubernetes' filters count it on its node: until it is evicted, and again once it is terminating."""
        return self.node is not None and (self.status is not Status.RELEASING or self.terminating)

    def __repr__(self) -> str:
        where = f" on {self.node.name}" if self.node else ""
        return f"Task({self.key} {self.status.title}{where})"


def _index(name: str) -> tuple[int, int]:
    """The replica number at the end of a pod name of three parts or more; names without one come last (spec 02 D16)."""
    parts = name.rsplit("-", 2)
    if len(parts) == 3 and parts[2].isdecimal() and len(parts[2]) <= 18:
        return (0, int(parts[2]))
    return (1, 0)
