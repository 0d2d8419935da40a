"""A task: one pod, as the scheduler sees it."""

from __future__ import annotations

from dataclasses import dataclass, field
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


@dataclass(slots=True, eq=False, repr=False)
class Task:
    """One pod: its identity, its request (`shape`), and its status and node, which only `Cluster.move` changes."""

    uid: str
    namespace: str
    name: str
    shape: Shape
    label_set: LabelSet
    created: float
    order: tuple[int, int, float, str] = field(init=False)
    job: Job | None = None
    sub_job: SubJob | None = None
    status: Status = Status.PENDING
    node: Node | None = None
    annotations: dict[str, str] = field(default_factory=dict)
    role: str = ""
    priority: int = 1
    priority_class: str = ""
    preemptable: bool = True
    preempts: bool = True
    """Whether it may preempt (preemptionPolicy is not Never)."""
    zone: str = ""
    gates: tuple[str, ...] = ()
    ours: bool = True
    """Whether its scheduler is this one."""
    owner: tuple[str, str] | None = None
    """Kind and name of the controlling owner."""
    terminating: bool = False
    """Its pod carries a deletionTimestamp."""
    assumed: Status | None = None
    """What we decided and its pod does not show yet: Releasing if evicted, Binding if deleted while being bound."""
    preempted: bool = False
    """It is terminating because a scheduler preempted it."""
    pod_priority: int = 0
    """The priority of its pod, whatever an annotation says."""
    nominated: str = ""
    scheduled_at: float | None = None
    """When it was bound, by its PodScheduled condition."""
    started: float | None = None
    condition: Condition | None = None

    def __post_init__(self) -> None:
        self.order = (*_index(self.name), self.created, self.uid)

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
