"""A task: one pod, as the scheduler sees it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from stromboli.model.status import Status

if TYPE_CHECKING:
    from stromboli.model.amounts import Amounts
    from stromboli.model.job import Job, SubJob
    from stromboli.model.node_columns import Node
    from stromboli.model.shape import LabelSet, Shape


class Condition(NamedTuple):
    """A pod's PodScheduled condition, or a PodGroup's of some type, as last read or written."""

    status: str
    reason: str
    message: str


class Task:
    """One pod: its identity, its request (`shape`), and its status and node, which only `Cluster.move` changes."""

    __slots__ = (
        "annotations",
        "assumed",
        "condition",
        "created",
        "gates",
        "job",
        "label_set",
        "name",
        "namespace",
        "node",
        "nominated",
        "order",
        "ours",
        "owner",
        "pod_priority",
        "preemptable",
        "preempted",
        "preempts",
        "priority",
        "priority_class",
        "role",
        "scheduled_at",
        "shape",
        "started",
        "status",
        "sub_job",
        "terminating",
        "uid",
        "zone",
    )

    def __init__(
        self, uid: str, namespace: str, name: str, shape: Shape, label_set: LabelSet, created: float
    ):
        self.uid = uid
        self.namespace = namespace
        self.name = name
        self.shape = shape
        self.label_set = label_set
        self.created = created
        self.order = (*_index(name), created, uid)
        self.job: Job | None = None
        self.sub_job: SubJob | None = None
        self.status = Status.PENDING
        self.node: Node | None = None
        self.annotations: dict[str, str] = {}
        self.role = ""
        self.priority = 1
        self.priority_class = ""
        self.preemptable = True
        self.preempts = True
        """Whether it may preempt (preemptionPolicy is not Never)."""
        self.zone = ""
        self.gates: tuple[str, ...] = ()
        self.ours = True
        """Whether its scheduler is this one."""
        self.owner: tuple[str, str] | None = None
        """Kind and name of the controlling owner."""
        self.terminating = False
        """Its pod carries a deletionTimestamp."""
        self.assumed: Status | None = None
        """What we decided and its pod does not show yet: Releasing if evicted, Binding if deleted while being bound."""
        self.preempted = False
        """It is terminating because a scheduler preempted it."""
        self.pod_priority = 0
        """The priority of its pod, whatever an annotation says."""
        self.nominated = ""
        self.scheduled_at: float | None = None
        """When it was bound, by its PodScheduled condition."""
        self.started: float | None = None
        self.condition: Condition | None = None

    @property
    def key(self) -> str:
        return f"{self.namespace}/{self.name}"

    @property
    def may_preempt(self) -> bool:
        """Whether both it and its group allow it to preempt."""
        return self.preempts and (self.job is None or self.job.preempts)

    @property
    def request(self) -> Amounts:
        return self.shape.request

    @property
    def dims(self) -> tuple[int, ...]:
        return self.shape.dims

    @property
    def best_effort(self) -> bool:
        return self.shape.best_effort

    @property
    def in_view(self) -> bool:
        """Whether Kubernetes' filters see it on its node: until it is evicted, and again once it is terminating."""
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
