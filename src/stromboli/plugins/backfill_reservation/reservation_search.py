"""The earliest start of a job that waits for room, given when running tasks are expected to end.

Running tasks are ended in the order of their expected ends, in a rehearsal that is always taken back, and the ordinary
search is asked for places: with all its filters, topologies and grants. Of a job that only amounts keep waiting the
moment is found by arithmetic over node columns instead.
"""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING

import numpy as np

from stromboli.engine.placement.node_fit import slots
from stromboli.model.status import Status
from stromboli.plugins.backfill_reservation.reservation import Reservation

if TYPE_CHECKING:
    from stromboli.engine.plugin import Attempt
    from stromboli.engine.session import Session
    from stromboli.model.job import Job
    from stromboli.model.node_columns import Ints
    from stromboli.model.task import Task
    from stromboli.plugins.backfill_reservation.expected_ends import ExpectedEnds, Floats


class ReservationSearch:
    """Searches in one session."""

    def __init__(self, session: Session, ends: ExpectedEnds):
        self._session = session
        self._columns = session.cluster.columns
        self._ends = ends

    def reservation(self, job: Job, attempt: Attempt) -> Reservation | None:
        """The earliest start of a job with its places; none if it cannot be told when there will be room for it."""
        moments, order = self._ends.ordered()
        task = self._plain_task(job)
        if task is not None:
            start = self._start_by_amounts(task, self._session.rules.tasks_needed(job), moments, order)
            if start == inf:
                return None
            only = np.flatnonzero(self._session.usable(task))
            if len(only) == 1:
                needed = self._session.rules.tasks_needed(job)
                amounts = needed * task.shape.dense(len(self._columns.idle))
                return self._reserved(job, start, {int(only[0]): amounts})
            places = self._places_at(start, job, attempt)
            return None if places is None else self._reserved(job, start, places)
        return self._by_trials(job, attempt, np.unique(moments).tolist())

    def could_ever_fit(self, job: Job, attempt: Attempt) -> bool:
        """Whether there would be room for a job if all others had ended."""
        task = self._plain_task(job)
        if task is None:
            return self._places_at(inf, job, attempt) is not None
        room = slots(task.shape, self._columns.allocatable)[self._session.usable(task)]
        return int(room.sum()) >= self._session.rules.tasks_needed(job)

    def _plain_task(self, job: Job) -> Task | None:
        """One of the tasks of a job that nothing but amounts keeps waiting, all of which are alike."""
        pending = job.by_status[Status.PENDING]
        first = next(iter(pending))
        if job.policies or self._session.network_topology(job) is not None or job.reserved:
            return None
        if self._session.cluster.ledgers_of(first.shape) or not self._session.goes_by_numbers(first):
            return None
        if job.role_minimums or any(task.shape is not first.shape for task in pending):
            return None
        return first

    def _start_by_amounts(self, task: Task, needed: int, moments: Floats, order: Ints) -> float:
        """The first moment at which nodes have room for so many tasks alike; infinity if there is none."""
        usable, shape = self._session.usable(task), task.shape
        base = self._columns.future_idle

        def has_room(count: int) -> bool:
            free = base + self._ends.freed(order[:count], len(self._columns))
            return int(slots(shape, free)[usable].sum()) >= needed

        if not has_room(len(order)):
            return inf
        least, most = 0, len(order)
        while least < most:
            middle = (least + most) // 2
            if has_room(middle):
                most = middle
            else:
                least = middle + 1
        return float(moments[least - 1]) if least else self._session.reads.time

    def _by_trials(self, job: Job, attempt: Attempt, moments: list[float]) -> Reservation | None:
        """The same by rehearsals: the first moment by bisection, as more room never makes it harder."""
        moments = [self._session.reads.time, *moments]
        places = self._places_at(moments[-1], job, attempt)
        least, most = 0, len(moments) - 1
        while places is not None and least < most:
            middle = (least + most) // 2
            earlier = self._places_at(moments[middle], job, attempt)
            if earlier is None:
                least = middle + 1
            else:
                places, most = earlier, middle
        return None if places is None else self._reserved(job, moments[most], places)

    def _places_at(self, moment: float, job: Job, attempt: Attempt) -> dict[int, Ints] | None:
        """What the job would take of each node at a moment, by row; none if it would not start."""
        session = self._session
        ended = self._ends.ended_by(moment)
        with session.rehearsal() as trial:
            for task in ended:
                session.move(task, Status.SUCCEEDED, None)
            if not attempt():
                return None
            places: dict[int, Ints] = {}
            for change in trial.changes():
                task, node = change.task, change.task.node
                if task.job is job and node is not None and change.old_status is Status.PENDING:
                    vector = task.shape.dense(len(self._columns.idle))
                    places[node.row] = places.get(node.row, 0) + vector
            return places

    def _reserved(self, job: Job, start: float, places: dict[int, Ints]) -> Reservation:
        rows = np.array(sorted(places), dtype=np.int64)
        amounts = np.stack([places[row] for row in rows.tolist()], axis=1)
        moments, order = self._ends.ordered()
        by_then = order[: int(np.searchsorted(moments, start, side="right"))]
        free = self._columns.future_idle + self._ends.freed(by_then, len(self._columns))
        return Reservation(job, start, rows, amounts, free[:, rows] - amounts)
