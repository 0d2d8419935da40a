"""What one queue is entitled to, and what it holds together with the queues below it."""

from __future__ import annotations

from stromboli.model.amounts import Amounts, Vector, dominant_share, is_empty, plus
from stromboli.model.dimensions import PODS
from stromboli.model.job import Job
from stromboli.model.queue import Queue

NOTHING: Vector = {}
Standing = tuple[float, bool]
"""Who comes first: the smaller share, then who deserves anything at all."""


class Allotment:
    """A queue's place: its shares, its ancestors (the parent first), and the sums of what lies below.

    Quota on devices (keys `deviceclass/<class>` and `<dim>.deviceclass/<class>`, spec 03 9) stands in these amounts as
    plain resources that no task asks for, quirks included; counting claims against it belongs into `has_room`.
    """

    __slots__ = (
        "ancestors",
        "children",
        "deserved",
        "eldest",
        "guarantee",
        "held_below",
        "limit",
        "pledged_below",
        "queue",
    )

    def __init__(self, queue: Queue, limit: Amounts, deserved: Amounts, guarantee: Amounts):
        self.queue = queue
        self.limit = limit
        """What it may have at most."""
        self.deserved = deserved
        """What it may have without being taken from."""
        self.guarantee = guarantee
        """What is kept free for it."""
        self.ancestors: tuple[Allotment, ...] = ()
        self.children: list[str] = []
        self.held_below: Amounts = {}
        self.pledged_below: Amounts = {}
        self.eldest = (queue.created, queue.name)
        """The oldest queue with jobs at or below it: where equal branches of the tree fall."""

    @property
    def branch(self) -> Allotment:
        """The queue right below the root that it is, or is below of."""
        return self.ancestors[-2] if len(self.ancestors) > 1 else self

    @property
    def held(self) -> Amounts:
        return plus(self.queue.held, self.held_below) if self.held_below else self.queue.held

    @property
    def standing(self) -> Standing:
        if is_empty(self.deserved):
            return (1.0, True)
        return (dominant_share(self.held, self.deserved), False)

    def reserved_beside(self, job: Job | None) -> Vector:
        """What is reserved for other jobs of this queue, or of those below it where it is the head of a tree."""
        return self.queue.reserved_beside(job, below=bool(self.children))

    def has_room(self, request: Vector, kept: Vector = NOTHING) -> bool:
        """Whether a request fits below its limit (FITS, without building sums), beside what is kept for others."""
        limit, below = self.limit, self.held_below
        allocated, pipelined = self.queue.allocated, self.queue.pipelined
        for dim, asked in request.items():
            if asked > 0 and dim != PODS:
                held = allocated.get(dim, 0) + pipelined.get(dim, 0) + below.get(dim, 0)
                if held + kept.get(dim, 0) + asked > limit.get(dim, 0):
                    return False
        return True

    def __repr__(self) -> str:
        return f"Allotment({self.queue.name})"
