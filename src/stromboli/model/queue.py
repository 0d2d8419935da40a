"""A queue: a share of the cluster, perhaps part of a hierarchy."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from stromboli.model.amounts import Amounts, Vector, minus, plus

if TYPE_CHECKING:
    from stromboli.api.types.scheduling import Queue as QueueObject
    from stromboli.model.job import Job

ROOT = "root"


@dataclass(slots=True, eq=False, repr=False)
class Queue:
    """A queue by name; it exists once its object is known, and is open unless its status says otherwise."""

    name: str
    object: QueueObject | None = None
    created: float = 0.0
    jobs: dict[Job, None] = field(default_factory=dict)
    capability: Amounts = field(default_factory=dict)
    deserved: Amounts = field(default_factory=dict)
    guarantee: Amounts = field(default_factory=dict)
    allocated: Amounts = field(default_factory=dict)
    """What its tasks in an allocated status hold."""
    pipelined: Amounts = field(default_factory=dict)
    """What its tasks will hold on nodes that are still being freed."""
    pending: Amounts = field(default_factory=dict)
    """What its Pending tasks request."""
    reserved: Amounts = field(default_factory=dict)
    """What reservations keep for its jobs beyond a cycle."""
    reserved_below: Amounts = field(default_factory=dict)
    """The same for jobs of the queues below it."""
    reported: dict[str, str] | None = None
    """The allocated amounts that its status shows."""

    @property
    def exists(self) -> bool:
        return self.object is not None

    @property
    def open(self) -> bool:
        """Open, or of no state yet (spec 02 D17)."""
        return self.object is not None and self.object.status.state in ("", "Open")

    @property
    def held(self) -> Amounts:
        """Allocated and pipelined together."""
        return plus(self.allocated, self.pipelined) if self.pipelined else self.allocated

    def reserved_beside(self, job: Job | None, below: bool = False) -> Vector:
        """What is reserved here (and below) for others than a job that is here (or below)."""
        total = plus(self.reserved, self.reserved_below) if below and self.reserved_below else self.reserved
        return minus(total, job.reserved) if total and job is not None else total

    def unavailable_to(self, job: Job | None) -> Amounts:
        """What its tasks have or were promised, and what is reserved for other jobs of it than this one."""
        return plus(self.held, self.reserved_beside(job)) if self.reserved else self.held

    @property
    def weight(self) -> int:
        return self.object.spec.weight if self.object else 1

    @property
    def priority(self) -> int:
        return self.object.spec.priority if self.object else 0

    @property
    def reclaimable(self) -> bool:
        return self.object is None or self.object.spec.reclaimable is not False

    @property
    def parent(self) -> str:
        """The parent's name; every queue but the root has one."""
        if self.name == ROOT or self.object is None:
            return ""
        return self.object.spec.parent or ROOT

    @property
    def annotations(self) -> dict[str, str]:
        return self.object.metadata.annotations if self.object else {}

    def __repr__(self) -> str:
        return f"Queue({self.name})"


def lineage(queue: Queue, queues: dict[str, Queue]) -> list[Queue]:
    """A queue and its ancestors up to the root; an unknown parent counts as root, a cycle ends where it closes."""
    path = [queue]
    while path[-1].name != ROOT:
        parent = queues.get(path[-1].parent)
        if parent is None or not parent.exists:
            parent = queues.get(ROOT)
        if parent is None or parent in path:
            break
        path.append(parent)
    return path
