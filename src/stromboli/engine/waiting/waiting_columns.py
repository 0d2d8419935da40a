"""Jobs that wait for room as columns: what each needs and how long it runs at most, to look at all of them at once."""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from stromboli.model.job import Job
    from stromboli.model.node_columns import Ints
    from stromboli.model.task import Task

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
FIRST_SLOTS = 64
SLACK = 1 + 1e-12
"""Sums are floats here: they may say that a job fits that does not, never the other way round."""


class WaitingColumns:
    """Jobs of one kind of task each, by slot; a slot that is not in use needs more than there can be."""

    def __init__(self) -> None:
        self.jobs: list[Job | None] = [None] * FIRST_SLOTS
        """The job of each slot."""
        self.tasks: list[Task | None] = [None] * FIRST_SLOTS
        """One of its tasks, all of which are alike."""
        self.slots: dict[Job, int] = {}
        """The slot of each job."""
        self._requests: Floats = np.full((FIRST_SLOTS, 0), inf)
        self._needed: Floats = np.ones(FIRST_SLOTS)
        self.limits: Floats = np.full(FIRST_SLOTS, inf)
        """Seconds that each job runs at most; infinity if nobody says."""
        self.had_turn: Bools = np.ones(FIRST_SLOTS, dtype=bool)
        """Whether each job has had a turn since it waits; none has while its queue has had its share."""
        self._unused = list(range(FIRST_SLOTS))[::-1]

    def __len__(self) -> int:
        return len(self.slots)

    def add(self, job: Job, task: Task, needed: int, limit: float, dims: int, had_turn: bool = True) -> int:
        """Let a job wait that needs so many tasks to start."""
        if dims > self._requests.shape[1]:
            self._widen(dims)
        if not self._unused:
            self._grow()
        slot = self._unused.pop()
        self.jobs[slot], self.tasks[slot], self.slots[job] = job, task, slot
        self._requests[slot] = task.shape.dense(dims)
        self._needed[slot], self.limits[slot], self.had_turn[slot] = needed, limit, had_turn
        return slot

    def remove(self, job: Job) -> None:
        slot = self.slots.pop(job)
        self.jobs[slot] = self.tasks[slot] = None
        self._requests[slot] = inf
        self.had_turn[slot] = True
        self._unused.append(slot)

    def needed(self, slot: int) -> int:
        """How many tasks the job of a slot needs to start."""
        return int(self._needed[slot])

    def _widen(self, dims: int) -> None:
        more = np.zeros((len(self.jobs), dims - self._requests.shape[1]))
        if not self._requests.shape[1]:
            more[:] = inf
        self._requests = np.hstack((self._requests, more))

    def _grow(self) -> None:
        count = len(self.jobs)
        self.jobs += [None] * count
        self.tasks += [None] * count
        self._requests = np.vstack((self._requests, np.full((count, self._requests.shape[1]), inf)))
        self._needed = np.concatenate((self._needed, np.ones(count)))
        self.limits = np.concatenate((self.limits, np.full(count, inf)))
        self.had_turn = np.concatenate((self.had_turn, np.ones(count, dtype=bool)))
        self._unused = list(range(count, 2 * count))[::-1]

    def may_fit(self, free: Ints) -> Bools:
        """Which jobs could start with what is free on nodes, by slot: a task on the emptiest, all on all of them."""
        dims = self._requests.shape[1]
        if not dims or not free.shape[1]:
            return np.zeros(len(self.jobs), dtype=bool)
        positive = np.maximum(free[:dims], 0)
        largest, total = positive.max(axis=1), positive.sum(axis=1, dtype=np.float64) * SLACK
        fitting: Bools = np.ones(len(self.jobs), dtype=bool)
        for dim in range(dims):
            column = self._requests[:, dim]
            fitting &= column <= largest[dim]
            if free.shape[1] > 1 or self._any_gang:
                fitting &= column * self._needed <= total[dim]
        return fitting

    @property
    def _any_gang(self) -> bool:
        return bool(self._needed.max() > 1)
