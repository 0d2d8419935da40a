"""What is free on nodes from each moment on, given running tasks and promised starts: steps in time."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from math import inf
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from stromboli.engine.placement.node_fit import times_fitting
from stromboli.model.status import Status

if TYPE_CHECKING:
    from stromboli.engine.plugin import Promise
    from stromboli.model.job import Job
    from stromboli.model.ledgers import Ledger
    from stromboli.model.node_columns import Ints, Node
    from stromboli.model.shape import Shape


Floats = NDArray[np.float64]
LEAST_READ = 2**13
"""Reading this many numbers takes as long as the other work of a search."""


class EarliestSlots(NamedTuple):
    """The earliest slots for equal tasks: the moment, and the number of tasks by node."""

    start: float
    rows: Ints
    counts: Ints


class AvailabilityProfile:
    """Amounts that are free on each node from each step until the next."""

    def __init__(self, now: float, free: Ints):
        self.times: Floats = np.array([now])
        """The start of each step; the first is now."""
        self._free: Ints = free[None].copy()
        """(step, resource, node)"""
        self.frees = 0
        """The number of unexpected releases."""
        self._freed_at: Ints = np.zeros(free.shape[1], dtype=np.int64)
        """The number of unexpected releases at the last one of each node."""
        self.read = 0
        """The count of numbers read by searches; each search counts `LEAST_READ` more."""
        self._steps_needed = 1

    @classmethod
    def of(
        cls, now: float, free: Ints, moments: Floats, requests: Ints, rows: Ints, most: int
    ) -> AvailabilityProfile:
        """Make a profile of what is free now, and of what is released when, in ascending order, and on which nodes.

        If that needs more numbers than `most`, some resources are released later than expected.
        """
        profile = cls(now, free)
        if len(moments):
            steps = np.unique(np.maximum(moments, np.nextafter(now, inf)))
            allowed = max(most // max(free.size, 1), 2)
            if len(steps) > allowed:
                steps = steps[np.unique(np.linspace(0, len(steps) - 1, allowed).astype(np.int64))]
            freed = np.zeros((len(steps), free.shape[1], free.shape[0]), dtype=np.int64)
            np.add.at(freed, (steps.searchsorted(moments), rows), requests)
            later = free + np.cumsum(freed, axis=0).transpose(0, 2, 1)
            profile.times = np.concatenate((profile.times, steps))
            profile._free = np.concatenate((profile._free, later))
        return profile

    @property
    def cells(self) -> int:
        """The count of its numbers."""
        return self._free.size

    @property
    def now(self) -> Ints:
        """What is free now."""
        free: Ints = self._free[0]
        return free

    def forget(self, now: float) -> None:
        """Drop past steps."""
        past = int(self.times.searchsorted(now, side="right")) - 1
        if past > 0:
            self.times, self._free = self.times[past:].copy(), self._free[past:].copy()
        self.times[0] = now

    def add_steps(self, moments: Floats) -> None:
        """Add steps at some moments, which costs less at once than one after the other."""
        times = np.union1d(self.times, moments[(moments > self.times[0]) & (moments < inf)])
        self._free = self._free[self.times.searchsorted(times, side="right") - 1]
        self.times = times

    def merge_steps(self) -> None:
        """Drop steps at which nothing changes, once they may be many."""
        if len(self.times) > 2 * self._steps_needed:
            differs = (self._free[1:] != self._free[:-1]).any(axis=(1, 2))
            kept = np.concatenate(([True], differs))
            self.times, self._free = self.times[kept], self._free[kept]
            self._steps_needed = len(self.times)

    def take(self, start: float, end: float, rows: Ints, amounts: Ints, sign: int = 1) -> None:
        """Take amounts of some nodes (resource, place in `rows`) for a period, or (-1) release them."""
        start = max(start, float(self.times[0]))
        if end > start:
            first = self._step(start)
            last = len(self.times) if end == inf else self._step(end)
            self._free[first:last, :, rows] -= sign * amounts

    def free(self, start: float, end: float, rows: Ints, amounts: Ints) -> None:
        """Release the same amounts early, so that jobs may start earlier there than promised."""
        if end > max(start, float(self.times[0])):
            self.take(start, end, rows, amounts, -1)
            self.note_freed(rows)

    def note_freed(self, rows: Ints) -> None:
        """Record that more is free on some nodes than expected."""
        self.frees += 1
        self._freed_at[rows] = self.frees

    def freed_since(self, frees: int) -> Ints:
        """The nodes with unexpected releases after a given count of them."""
        return np.flatnonzero(self._freed_at > frees)

    def _step(self, moment: float) -> int:
        """The step that starts at a moment, added if there is none."""
        place = int(self.times.searchsorted(moment))
        if place == len(self.times) or self.times[place] != moment:
            self.times = np.insert(self.times, place, moment)
            self._free = np.insert(self._free, place, self._free[place - 1], axis=0)
        return place

    def least(self, start: float, end: float, rows: Ints | slice = slice(None)) -> Ints:
        """The minimum that is free on each of some nodes during a period: (resource, node)."""
        first = max(int(self.times.searchsorted(start, side="right")) - 1, 0)
        last = max(int(self.times.searchsorted(end)), first + 1)
        least: Ints = self._free[first:last, :, rows].min(axis=0)
        return least

    def earliest(
        self, shape: Shape, needed: int, limit: float, usable: Ints, before: float = inf
    ) -> EarliestSlots | None:
        """The first moment from which a number of tasks fit for as long as they run; none if there is none.

        Only moments before a limit are considered.
        """
        starts = int(self.times.searchsorted(before))
        if not starts:
            return None
        steps = int(self.times.searchsorted(before + limit))
        fitting = self._fitting(shape, usable, steps)
        enough = fitting.sum(axis=1) >= needed
        ends = self.times.searchsorted(self.times[:starts] + limit)
        next_lack = np.minimum.accumulate(np.where(enough, steps, np.arange(steps))[::-1])[::-1]
        ends = np.maximum(ends, np.arange(starts) + 1)
        for step in np.flatnonzero(next_lack[:starts] >= ends).tolist():
            counts = fitting[step : int(ends[step])].min(axis=0)
            self.read += int(ends[step] - step) * len(usable)
            if counts.sum() >= needed:
                return EarliestSlots(float(self.times[step]), *_first_of(usable, counts, needed))
        return None

    def _fitting(self, shape: Shape, usable: Ints, steps: int) -> Ints:
        """The number of tasks of a shape that fit at each of the first steps on each of some nodes."""
        asked = [(dim, int(amount)) for dim, amount in shape.request.items() if amount > 0]
        self.read += LEAST_READ + len(asked) * steps * len(usable)
        rows = slice(None) if len(usable) == self._free.shape[2] else usable
        fitting = times_fitting((self._free[:steps, dim][:, rows], amount) for dim, amount in asked)
        if fitting is None:
            raise ValueError("a task that requests nothing needs no capacity")
        return fitting


def _first_of(usable: Ints, counts: Ints, needed: int) -> tuple[Ints, Ints]:
    """A number of slots on the first nodes that have them."""
    before = np.cumsum(counts) - counts
    taken = np.clip(needed - before, 0, counts)
    used = np.flatnonzero(taken)
    return usable[used], taken[used]


# -- the promised start of one job, as a part of that


@dataclass(slots=True, eq=False)
class Booking:
    """What is promised to a job: the start, the end, and the amounts of nodes."""

    job: Job
    start: float
    end: float
    nodes: tuple[Node, ...]
    rows: Ints
    amounts: Ints
    """What it takes of them: (resource, place in `rows`)."""
    kinds: dict[Shape, int]
    """The number of pending tasks of each shape when it was made."""
    needed: int
    """The number of them that must start together."""
    usable: Ints | None = None
    """The nodes that its tasks may use, if they are equal and only amounts matter; else a search found its places."""
    ledgers: frozenset[Ledger] = field(default=frozenset())
    """What its tasks need besides amounts: no other task that needs the same may be on its nodes meanwhile."""
    frees: int = -1
    """The count of unexpected releases when an earlier start was last searched for (`AvailabilityProfile.frees`)."""
    promise: Promise | None = None
    is_reported: bool = False

    def is_within(self, start: float, end: float) -> bool:
        """Whether it takes anything during a period."""
        return self.start < end and start < self.end

    def holds(self, profile: AvailabilityProfile) -> bool:
        """Whether what it takes is free, besides what is booked already."""
        return bool((profile.least(self.start, self.end, self.rows) >= self.amounts).all())

    def may_improve(self, profile: AvailabilityProfile, usable: Ints) -> bool:
        """Whether nodes with unexpected releases fit any of its tasks before its start; other nodes do not matter."""
        freed = np.intersect1d(profile.freed_since(self.frees), usable, assume_unique=True)
        if 2 * len(freed) > len(usable) or np.isin(self.rows, freed).any():
            return True
        (shape,) = self.kinds
        limit = self.end - self.start
        return len(freed) > 0 and profile.earliest(shape, 1, limit, freed, self.start) is not None

    def is_there(self, dims: int) -> bool:
        """Whether its nodes still exist, with as many resources; their rows may have changed."""
        rows = [node.row for node in self.nodes]
        if min(rows) < 0 or len(self.amounts) != dims:
            return False
        self.rows = np.array(rows, dtype=np.int64)
        return True


def kinds_of(job: Job) -> dict[Shape, int]:
    """The number of pending tasks of each shape in a job."""
    return Counter(task.shape for task in job.by_status[Status.PENDING])
