"""A queue: a share of the cluster, perhaps part of a hierarchy."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from stromboli.api.object_bounds import MAX_QUEUE_DEPTH
from stromboli.model.amounts import Amounts, Vector, minus, plus

if TYPE_CHECKING:
    from stromboli.api.types.scheduling import Queue as QueueObject
    from stromboli.model.job import Job
    from stromboli.model.requirements.placement_requirement import Demand

ROOT = "root"


@dataclass(slots=True, eq=False, repr=False)
class Queue:
    """A queue by name; it exists once its object is known, and is open unless its status says otherwise."""

    name: str
    """Its name, unique in the cluster."""
    object: QueueObject | None = None
    """The Queue as the API server has it; none while only jobs name it."""
    created: float = 0.0
    """When its object was created, in seconds since 1970."""
    jobs: dict[Job, None] = field(default_factory=dict)
    """Its jobs: pending, running and finished."""
    capability: Amounts = field(default_factory=dict)
    """Its maximum (`spec.capability`); a resource that is not named is not limited."""
    deserved: Amounts = field(default_factory=dict)
    """Its share if all queues have more demand (`spec.deserved`)."""
    guarantee: Amounts = field(default_factory=dict)
    """What is reserved for it even without demand (`spec.guarantee`)."""
    allocated: Amounts = field(default_factory=dict)
    """What its tasks hold: Allocated, Binding, Bound, Running; without the queues below it; follows every move."""
    pipelined: Amounts = field(default_factory=dict)
    """What its tasks are promised of resources that are still in use; follows every move."""
    pending: Amounts = field(default_factory=dict)
    """What its Pending tasks request; follows every move."""
    reserved: Amounts = field(default_factory=dict)
    """What is reserved for its jobs beyond a cycle."""
    expected: Amounts = field(default_factory=dict)
    """The part of `reserved` for pods that do not exist yet."""
    reserved_below: Amounts = field(default_factory=dict)
    """The same for jobs of the queues below it."""
    reported: dict[str, str] | None = None
    """The allocated amounts that its status shows."""
    demands: tuple[Demand, ...] = ()
    """What it requires of the placement of its jobs and only a plugin can honour."""

    @property
    def exists(self) -> bool:
        """Whether there is a Queue object of this name; without one cycles ignore its jobs."""
        return self.object is not None

    @property
    def open(self) -> bool:
        """Whether its state is Open, or none yet; a queue that is not open admits no job."""
        return self.object is not None and self.object.status.state in ("", "Open")

    @property
    def held(self) -> Amounts:
        """Allocated and pipelined together: what its tasks hold or were promised."""
        return plus(self.allocated, self.pipelined) if self.pipelined else self.allocated

    def reserved_beside(self, job: Job | None, below: bool = False) -> Vector:
        """What is reserved in this queue and those below it, except for one job of them."""
        total = plus(self.reserved, self.reserved_below) if below and self.reserved_below else self.reserved
        return minus(total, job.reserved) if total and job is not None else total

    def unavailable_to(self, job: Job | None) -> Amounts:
        """What its allocated and pipelined tasks hold, plus the reservations for its jobs except this one."""
        return plus(self.held, self.reserved_beside(job)) if self.reserved else self.held

    @property
    def weight(self) -> int:
        """Its weight when shares are divided by weight (`spec.weight`)."""
        return self.object.spec.weight if self.object else 1

    @property
    def priority(self) -> int:
        """Its priority among queues (`spec.priority`); higher comes first if a plugin orders by it."""
        return self.object.spec.priority if self.object else 0

    @property
    def reclaimable(self) -> bool:
        """Whether other queues may reclaim what it borrowed (`spec.reclaimable`)."""
        return self.object is None or self.object.spec.reclaimable is not False

    @property
    def parent(self) -> str:
        """The name of the queue above it; every queue but `root` has one."""
        if self.name == ROOT or self.object is None:
            return ""
        return self.object.spec.parent or ROOT

    @property
    def annotations(self) -> dict[str, str]:
        """The annotations of its object."""
        return self.object.metadata.annotations if self.object else {}

    def __repr__(self) -> str:
        return f"Queue({self.name})"


def lineage(queue: Queue, queues: dict[str, Queue]) -> list[Queue]:
    """A queue and its ancestors up to the root; an unknown parent counts as root, and a cycle ends where it closes.

    At most `MAX_QUEUE_DEPTH` ancestors, since users decide how deeply queues are nested.
    """
    path = {queue: None}
    while queue.name != ROOT and len(path) <= MAX_QUEUE_DEPTH:
        parent = queues.get(queue.parent)
        if parent is None or not parent.exists:
            parent = queues.get(ROOT)
        if parent is None or parent in path:
            break
        path[parent] = None
        queue = parent
    return list(path)
