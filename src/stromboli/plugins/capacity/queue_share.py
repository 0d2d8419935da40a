"""What one queue is entitled to, and what it holds together with the queues below it."""

from __future__ import annotations

from dataclasses import dataclass, field

from stromboli.model.amounts import Amounts, Vector, dominant_share, is_empty, plus
from stromboli.model.dimensions import PODS
from stromboli.model.job import Job
from stromboli.model.queue import Queue

NOTHING: Vector = {}
OrderKey = tuple[float, bool]
"""The order of queues: the smaller share first, then queues that deserve anything."""


@dataclass(slots=True, eq=False, repr=False)
class QueueShare:
    """A queue's shares, its ancestors (the parent first), and the sums over the queues below it.

    Quota on devices (keys `deviceclass/<class>` and `<dim>.deviceclass/<class>`, spec 03 9) is kept in these amounts
    as plain resources that no task requests, quirks included; claims are counted against it in `device_quota`.
    """

    queue: Queue
    limit: Amounts
    """What it may have at most."""
    deserved: Amounts
    """What it may have without being reclaimed from."""
    guarantee: Amounts
    """What is reserved for it."""
    ancestors: tuple[QueueShare, ...] = ()
    children: list[str] = field(default_factory=list)
    held_below: Amounts = field(default_factory=dict)
    inqueue_below: Amounts = field(default_factory=dict)
    oldest: tuple[float, str] = field(init=False)
    """Creation time and name of the oldest queue with jobs at or below it, to break ties between branches."""

    def __post_init__(self) -> None:
        self.oldest = (self.queue.created, self.queue.name)

    @property
    def branch(self) -> QueueShare:
        """Its topmost ancestor below the root, or itself."""
        return self.ancestors[-2] if len(self.ancestors) > 1 else self

    @property
    def held(self) -> Amounts:
        return plus(self.queue.held, self.held_below) if self.held_below else self.queue.held

    @property
    def order_key(self) -> OrderKey:
        if is_empty(self.deserved):
            return (1.0, True)
        return (dominant_share(self.held, self.deserved), False)

    def reserved_beside(self, job: Job | None) -> Vector:
        """What is reserved for other jobs of this queue, or of those below it where it has children."""
        return self.queue.reserved_beside(job, below=bool(self.children))

    def has_room(self, request: Vector, reserved: Vector = NOTHING) -> bool:
        """Whether a request fits below its limit (FITS, without building sums), beside what is reserved for others."""
        limit, below = self.limit, self.held_below
        allocated, pipelined = self.queue.allocated, self.queue.pipelined
        for dim, amount in request.items():
            if amount > 0 and dim != PODS:
                held = allocated.get(dim, 0) + pipelined.get(dim, 0) + below.get(dim, 0)
                if held + reserved.get(dim, 0) + amount > limit.get(dim, 0):
                    return False
        return True

    def __repr__(self) -> str:
        return f"QueueShare({self.queue.name})"
