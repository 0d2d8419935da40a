"""The expected ends of tasks on nodes, by their starts and time limits, as columns kept up by moves."""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from stromboli.model.status import Status
from stromboli.model.time_limits import QueueLimits, time_limit

if TYPE_CHECKING:
    from collections.abc import Iterable

    from stromboli.model.cluster import Change, Cluster, Dirty
    from stromboli.model.job import Job
    from stromboli.model.node_columns import Ints
    from stromboli.model.queue import Queue
    from stromboli.model.shape import Shape
    from stromboli.model.task import Task

Floats = NDArray[np.float64]
HOLDING = frozenset((Status.BINDING, Status.BOUND, Status.RUNNING))
"""Statuses of tasks that run or will; other tasks on nodes are releasing, or are expected to stay."""
FIRST_SLOTS = 64
LEAST_GUESS = 300.0
"""Seconds; a task without a time limit is expected to run at least twice as long."""


class ExpectedEnds:
    """Tasks on nodes with the moment of their end (never: infinity), where they are and what they free."""

    def __init__(self) -> None:
        self._clear()
        self._limits = QueueLimits()
        self.changes: list[tuple[int, int, Ints, float]] = []
        """What started (1) and ended (-1) between two sessions: sign, node, amounts, expected end."""
        self.was_rebuilt = True
        """Whether all tasks were counted again, so that `changes` is meaningless."""
        self.ended_early = False
        """Whether something ended before it was expected to, or is expected to end earlier than before."""

    def _clear(self, size: int = FIRST_SLOTS, dims: int = 0) -> None:
        self._tasks: list[Task | None] = [None] * size
        self._ends: Floats = np.full(size, inf)
        self._starts: Floats = np.full(size, inf)
        self._rows: Ints = np.zeros(size, dtype=np.int64)
        self._queues: Ints = np.zeros(size, dtype=np.int64)
        self._numbers: dict[Queue | None, int] = {}
        self._requests: Ints = np.zeros((size, dims), dtype=np.int64)
        self._slots: dict[Task, int] = {}
        self._unused = list(range(size - 1, -1, -1))
        self._of_job: dict[Job, dict[Task, None]] = {}
        self._not_started: dict[Task, None] = {}

    # -- following the cluster

    def update(self, cluster: Cluster, dirty: Dirty, now: float) -> None:
        """Follow what changed since the last session."""
        self._now = now
        dims = len(cluster.columns.idle)
        limits_changed = self._limits.update(cluster, dirty)
        self.was_rebuilt = (
            dirty.everything or dirty.nodes or limits_changed or dims != self._requests.shape[1]
        )
        if self.was_rebuilt:
            self._rebuild(cluster, dims)
        self.changes, self.ended_early = [], False
        if not self.was_rebuilt:  # tasks that have not started start now, at the earliest
            self._recount(dict.fromkeys((*dirty.jobs, *(task.job for task in self._not_started if task.job))))

    def _rebuild(self, cluster: Cluster, dims: int) -> None:
        """Count all tasks at once, with as many slots to spare."""
        by_job: dict[Job, dict[Task, None]] = {}
        tasks: list[Task] = []
        ends: list[float] = []
        for job in cluster.jobs.values():
            of_job = [
                task
                for status in HOLDING
                for task in job.by_status[status]
                if task.node is not None and task.node.row >= 0
            ]
            if of_job:
                by_job[job] = dict.fromkeys(of_job)
                tasks += of_job
                ends += self._ends_of(job, of_job)
        count = len(tasks)
        self._clear(max(FIRST_SLOTS, 2 * count), dims)
        self._of_job = by_job
        not_started = (task for task in tasks if task.started is None and task.scheduled_at is None)
        self._not_started = dict.fromkeys(not_started)
        self._slots = dict(zip(tasks, range(count), strict=True))
        del self._unused[len(self._unused) - count :]
        self._tasks[:count] = tasks
        self._ends[:count] = ends
        self._starts[:count] = list(map(self._start, tasks))
        self._queues[:count] = [self._number_of(task) for task in tasks]
        self._rows[:count] = [task.node.row for task in tasks if task.node is not None]
        shapes: dict[Shape, int] = {}
        places = [shapes.setdefault(task.shape, len(shapes)) for task in tasks]
        if shapes:
            self._requests[:count] = np.array([shape.dense(dims) for shape in shapes])[places]

    def _recount(self, jobs: Iterable[Job]) -> None:
        for job in jobs:
            before = self._counted(job)
            for task in before:
                self._remove(task)
            for status in HOLDING:
                for task in job.by_status[status]:
                    self._add(task)
            if before or job in self._of_job:
                self._note_changes(before, self._counted(job))

    def _counted(self, job: Job) -> dict[Task, tuple[int, float]]:
        """The tasks of a job that are counted, on which node and until when."""
        slots = ((task, self._slots[task]) for task in self._of_job.get(job, ()))
        return {task: (int(self._rows[slot]), float(self._ends[slot])) for task, slot in slots}

    def _note_changes(
        self, before: dict[Task, tuple[int, float]], after: dict[Task, tuple[int, float]]
    ) -> None:
        dims = self._requests.shape[1]
        for sign, some, others in ((-1, before, after), (1, after, before)):
            for task, (row, end) in some.items():
                if others.get(task) != (row, end):
                    self.changes.append((sign, row, task.shape.dense(dims), end))
        for task, (_, end) in before.items():
            self.ended_early |= end > self._now and (task not in after or after[task][1] < end)

    def on_move(self, change: Change) -> None:
        task = change.task
        holds = change.status in HOLDING and change.node is not None
        if task in self._slots and (not holds or change.node is not change.old_node):
            self._remove(task)
        if holds and task not in self._slots:
            self._add(task)

    def _add(self, task: Task) -> None:
        node, job = task.node, task.job
        if node is None or node.row < 0 or job is None:
            return
        if not self._unused:
            self._grow()
        slot = self._unused.pop()
        self._slots[task] = slot
        self._tasks[slot] = task
        self._of_job.setdefault(job, {})[task] = None
        self._rows[slot] = node.row
        self._queues[slot] = self._number_of(task)
        self._requests[slot] = task.shape.dense(self._requests.shape[1])
        self._starts[slot] = self._start(task)
        self._ends[slot] = self._end(task)
        if task.started is None and task.scheduled_at is None:
            self._not_started[task] = None

    def _number_of(self, task: Task) -> int:
        """The number of a task's queue in the columns."""
        return self._numbers.setdefault(task.job.queue if task.job else None, len(self._numbers))

    def _grow(self) -> None:
        count = len(self._tasks)
        self._tasks += [None] * count
        self._ends = np.concatenate((self._ends, np.full(count, inf)))
        self._starts = np.concatenate((self._starts, np.full(count, inf)))
        self._rows = np.concatenate((self._rows, np.zeros(count, dtype=np.int64)))
        self._queues = np.concatenate((self._queues, np.zeros(count, dtype=np.int64)))
        self._requests = np.concatenate((self._requests, np.zeros_like(self._requests)))
        self._unused = list(range(count, 2 * count))

    def _remove(self, task: Task) -> None:
        slot = self._slots.pop(task)
        self._tasks[slot] = None
        self._ends[slot] = self._starts[slot] = inf
        self._unused.append(slot)
        self._not_started.pop(task, None)
        if task.job is not None:
            of_job = self._of_job[task.job]
            del of_job[task]
            if not of_job:
                del self._of_job[task.job]

    def limit(self, task: Task) -> float:
        """How long a task runs at most; infinity without a limit."""
        limit = time_limit(task, self._limits.of(task.job.queue if task.job is not None else None))
        return inf if limit is None else limit

    def limit_of(self, job: Job) -> float:
        """How long a job runs at most, also before its pods exist; infinity without a limit."""
        tasks = job.by_status[Status.PENDING]
        if tasks:
            return max(map(self.limit, tasks))
        limit = self._limits.of(job.queue) if job.time_limit is None else job.time_limit
        return inf if limit is None else limit

    def _end(self, task: Task) -> float:
        return self._start(task) + self.limit(task)

    def _ends_of(self, job: Job, tasks: Iterable[Task]) -> list[float]:
        """The ends of tasks of one job."""
        default = self._limits.of(job.queue)
        limits = ((task, time_limit(task, default)) for task in tasks)
        return [inf if limit is None else self._start(task) + limit for task, limit in limits]

    def _start(self, task: Task) -> float:
        start = task.started if task.started is not None else task.scheduled_at
        return self._now if start is None else start

    # -- what will be free

    def ordered(self, guesses: bool = False) -> tuple[Floats, Ints]:
        """The moments at which tasks end, the earliest first and none before now, and the slots of these tasks.

        With `guesses`, tasks without a limit count too: see `_guessed_ends`.
        """
        ends = self._guessed_ends() if guesses else self._ends
        known = np.flatnonzero(ends < inf)
        order = known[np.argsort(ends[known], kind="stable")]
        return np.maximum(ends[order], self._now), order

    def _guessed_ends(self) -> Floats:
        """Expect tasks without a limit to run as long again as they have run, in steps so that this seldom changes."""
        endless = np.flatnonzero((self._ends == inf) & (self._starts < inf))
        ran = np.maximum(self._now - self._starts[endless], LEAST_GUESS)
        ends = self._ends.copy()
        ends[endless] = self._starts[endless] + LEAST_GUESS * 2 ** (np.floor(np.log2(ran / LEAST_GUESS)) + 1)
        return ends

    def overdue(self) -> bool:
        """Whether a task runs longer than it should."""
        return bool((self._ends < self._now).any())

    @property
    def has_unstarted(self) -> bool:
        """Whether the start of a task is not known: it is expected to start now."""
        return bool(self._not_started)

    def next_end(self) -> float:
        """The next moment at which a task is expected to end; infinity if none is."""
        later = self._ends[self._ends > self._now]
        return float(later.min()) if len(later) else inf

    def freed(self, slots: Ints, nodes: int) -> Ints:
        """What is released on each node when the tasks of these slots have ended: (resource, node)."""
        freed = np.zeros((nodes, self._requests.shape[1]), dtype=np.int64)
        np.add.at(freed, self._rows[slots], self._requests[slots])
        return freed.T

    def freed_by_queues(self, queues: Iterable[Queue], guesses: bool = False) -> tuple[Floats, Ints]:
        """The moments at which tasks of some queues end, ascending, and what these free until then, one row each."""
        moments, slots = self._ordered_of(queues, guesses)
        return moments, np.cumsum(self._requests[slots], axis=0)

    def jobs_ending_by(self, moment: float, queues: Iterable[Queue]) -> dict[str, None]:
        """The jobs of some queues of which tasks end by a moment, by their keys, the first to end first."""
        moments, slots = self._ordered_of(queues)
        ending = self.tasks_in(slots[: moments.searchsorted(moment, side="right")])
        return {task.job.key: None for task in ending if task.job is not None}

    def _ordered_of(self, queues: Iterable[Queue], guesses: bool = False) -> tuple[Floats, Ints]:
        moments, slots = self.ordered(guesses)
        numbers = [self._numbers[queue] for queue in queues if queue in self._numbers]
        chosen = np.isin(self._queues[slots], numbers)
        return moments[chosen], slots[chosen]

    def tasks_in(self, slots: Ints) -> list[Task]:
        """The tasks of these slots."""
        return [task for slot in slots.tolist() if (task := self._tasks[slot]) is not None]

    def requests(self, slots: Ints) -> tuple[Ints, Ints]:
        """What the tasks of these slots free, one row each, and on which node."""
        return self._requests[slots], self._rows[slots]
