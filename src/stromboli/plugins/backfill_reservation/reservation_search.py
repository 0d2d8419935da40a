"""The earliest start of a job without capacity, given the expected ends of running tasks, and its reservation.

The search ends running tasks in the order of their expected ends, in a rehearsal that is always undone, and asks the
ordinary search for places: with all its filters, topologies and grants. If amounts alone keep a job pending, the moment
is computed over node columns instead.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from math import inf
from typing import TYPE_CHECKING

import numpy as np

from stromboli.engine.placement.node_fit import slots, slots_of
from stromboli.engine.plugin import Promise
from stromboli.model.status import Status
from stromboli.plugins.backfill_reservation.early_admission import fits_nodes, pod_demand

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from stromboli.engine.placement.node_functions import Bools
    from stromboli.engine.plugin import Attempt
    from stromboli.engine.session import Session
    from stromboli.model.cluster import Cluster
    from stromboli.model.job import Job
    from stromboli.model.ledgers import Ledger
    from stromboli.model.node_columns import Ints, Node
    from stromboli.model.shape import Shape
    from stromboli.model.task import Task
    from stromboli.plugins.backfill_reservation.expected_ends import ExpectedEnds


# -- a promised start, and what other jobs may use of its nodes


@dataclass(slots=True, eq=False)
class StartReservation:
    """The latest start of a job without capacity, and the nodes that it needs."""

    job: Job
    start: float
    """When it starts at the latest, in seconds since 1970."""
    nodes: tuple[Node, ...]
    """The nodes that it needs."""
    rows: Ints
    """The same by row, in ascending order."""
    amounts: Ints
    """What it needs of them: (resource, place in `rows`)."""
    spare: Ints
    """What is left of them at its start beside it, in the same places; less with every task that stays beyond."""
    places: dict[Task, Node] = field(default_factory=dict)
    """The nodes of its tasks, unless these are equal and on one node."""
    alone: bool = False
    """Whether its places depend on more than amounts, so that no other task may stay on its nodes."""
    ledgers: frozenset[Ledger] = frozenset()
    """What its tasks need besides amounts: no other that needs the same may stay on its nodes."""

    without_pods: bool = False
    """Whether its pods did not exist yet, so that only its minimum resources counted."""

    def is_there(self) -> bool:
        """Whether its nodes are still there; they may have other rows than before."""
        rows = [node.row for node in self.nodes]
        if min(rows) < 0:
            return False
        if rows != self.rows.tolist():
            order = np.argsort(rows)
            self.nodes = tuple(self.nodes[place] for place in order.tolist())
            self.rows, self.amounts = np.array(rows, dtype=np.int64)[order], self.amounts[:, order]
        return True

    def leaves_reserved(self, cluster: Cluster, shape: Shape) -> Bools:
        """Nodes where a task may stay beyond the start of the job without taking what the job needs."""
        fits: Bools = np.ones(len(cluster.columns), dtype=bool)
        if self.alone or not self.ledgers.isdisjoint(cluster.ledgers_of(shape)):
            fits[self.rows] = False
            return fits
        beside: Bools = np.ones(len(self.rows), dtype=bool)
        for dim, amount in shape.request.items():
            if amount > 0:
                beside &= self.spare[dim] >= amount
        fits[self.rows] = beside
        return fits

    def beside(self, free: Ints) -> Ints:
        """What is free for tasks that stay beyond the start of the job, of what is free on each node."""
        left = free.copy()
        left[:, self.rows] = 0 if self.alone else np.minimum(left[:, self.rows], self.spare)
        return left

    def take(self, row: int, amount: Ints, sign: int) -> None:
        """A task that stays beyond the start of the job took an amount of a node, or (-1) no longer needs it."""
        place = int(self.rows.searchsorted(row))
        if place < len(self.rows) and self.rows[place] == row:
            self.spare[:, place] -= sign * amount


Places = dict["Task", "Node"]


# -- the search


class ReservationSearch:
    """Searches in one session, at one moment of it."""

    def __init__(self, session: Session, ends: ExpectedEnds, guesses: bool = False):
        self._session = session
        self._columns = session.cluster.columns
        self._ends = ends
        self._moments, self._order = ends.ordered(guesses)

    def reservation(
        self, job: Job, attempt: Attempt, last: StartReservation | None, capacity_came: bool
    ) -> StartReservation | None:
        """The earliest start of a job with its places; None if it is not known when there will be capacity for it.

        What was promised last stays as long as nothing better is found and it still holds. That takes trials only
        if capacity was released unexpectedly since.
        """
        task = self.plain_task(job)
        if task is None:
            return self._by_trials(job, attempt, last, capacity_came)
        needed = self._session.rules.tasks_needed(job)
        start = self._start_by_amounts(task, needed)
        if start == inf:
            return None
        if last is not None and start >= last.start and self._holds(last):
            return self._kept(last)
        usable = self.usable_rows(task)
        refused = is_refused_by_queue(self._session, job)
        if len(usable) == 1 and not refused:
            amounts = needed * task.shape.dense(len(self._columns.idle))
            return self._reserved(job, start, usable, amounts[:, None], {})
        places = self.places_at(start, job, attempt)
        if places is None and refused:  # the limits of its queue allow a later start than nodes
            return self._by_trials(job, attempt, last, capacity_came)
        return None if places is None else self._reserved_at(job, start, places)

    def reservation_without_pods(self, job: Job, last: StartReservation | None) -> StartReservation | None:
        """The earliest start of a job by its minimum resources; none if that is now, or not known."""
        if last is not None and last.start > self._session.reads.time and self._holds(last):
            return self._kept(last)
        ((request, needed),) = pod_demand(job)
        start = self.start_by_minimum(job)
        if not self._session.reads.time < start < inf:
            return None
        fitting = slots_of(request, self._free_at(start, np.arange(len(self._columns))))
        counts = np.clip(needed - (np.cumsum(fitting) - fitting), 0, fitting)
        rows = np.flatnonzero(counts)
        vector = np.array([int(request.get(dim, 0)) for dim in range(len(self._columns.idle))])
        amounts = vector[:, None] * counts[rows]
        reservation = self._reserved(job, start, rows, amounts, {})
        reservation.without_pods = True
        return reservation

    def start_by_minimum(self, job: Job) -> float:
        """The first moment at which nodes have what the pods of a job request; infinity if it is not known."""
        return self._first_moment(partial(fits_nodes, self._columns, job))

    def could_ever_fit(self, job: Job, attempt: Attempt) -> bool:
        """Whether nodes would have capacity for a job if all others had ended."""
        task = self.plain_task(job)
        if task is None:
            return self.places_at(inf, job, attempt) is not None
        capacity = slots(task.shape, self._columns.allocatable)[self.usable_rows(task)]
        return int(capacity.sum()) >= self._session.rules.tasks_needed(job)

    def plain_task(self, job: Job) -> Task | None:
        """A pending task of a job that only amounts keep pending, if all are equal; else None."""
        pending = job.by_status[Status.PENDING]
        first = next(iter(pending))
        if job.policies or self._session.topology.tier_limit(job) is not None or job.reserved:
            return None
        if (
            self._session.cluster.ledgers_of(first.shape)
            or not self._session.evaluation(first).goes_by_numbers
        ):
            return None
        if job.role_minimums or any(task.shape is not first.shape for task in pending):
            return None
        return first

    def usable_rows(self, task: Task) -> Ints:
        """The nodes that a task may use by more than amounts; none if plugins refuse it on all nodes."""
        if self._session.refused(task):
            return np.zeros(0, dtype=np.int64)
        return np.flatnonzero(self._session.evaluation(task).allowed)

    # -- by arithmetic

    def _start_by_amounts(self, task: Task, needed: int) -> float:
        """The first moment at which nodes have slots for so many equal tasks; infinity if there is none."""
        usable = self.usable_rows(task)
        if len(usable) == 1:
            return self._start_on(int(usable[0]), task, needed)
        return self._first_moment(lambda free: int(slots(task.shape, free[:, usable]).sum()) >= needed)

    def _first_moment(self, is_enough: Callable[[Ints], bool]) -> float:
        """The first moment at which enough is free on nodes; infinity if there is none."""
        base, order = self._columns.future_idle, self._order

        def has_capacity(count: int) -> bool:
            return is_enough(base + self._ends.freed(order[:count], len(self._columns)))

        if not has_capacity(len(order)):
            return inf
        least, most = 0, len(order)
        while least < most:
            middle = (least + most) // 2
            if has_capacity(middle):
                most = middle
            else:
                least = middle + 1
        return float(self._moments[least - 1]) if least else self._session.reads.time

    def _start_on(self, row: int, task: Task, needed: int) -> float:
        """The first moment on the only usable node."""
        requests, rows = self._ends.requests(self._order)
        here = np.flatnonzero(rows == row)
        columns = self._columns
        base = columns.idle[:, row] + columns.releasing[:, row] - columns.pipelined[:, row]
        enough = np.ones(len(here) + 1, dtype=bool)
        for dim, amount in task.shape.request.items():
            if amount > 0:
                free = np.concatenate(([0], np.cumsum(requests[here, dim]))) + base[dim]
                enough &= free >= needed * int(amount)
        if not enough[-1]:
            return inf
        first = int(enough.argmax())
        return float(self._moments[here[first - 1]]) if first else self._session.reads.time

    # -- by rehearsals

    def _by_trials(
        self, job: Job, attempt: Attempt, last: StartReservation | None, capacity_came: bool
    ) -> StartReservation | None:
        """The first moment by bisection, as more capacity never makes it harder to start."""
        moments = [self._session.reads.time, *np.unique(self._moments).tolist()]
        holds = last is not None and self._holds(last)
        if last is not None and holds:
            if not capacity_came:
                return self._kept(last)
            moments = [moment for moment in moments if moment < last.start]
        places = self.places_at(moments[-1], job, attempt) if moments else None
        if places is None:
            return self._kept(last) if last is not None and holds else None
        least, most = 0, len(moments) - 1
        while least < most:
            middle = (least + most) // 2
            earlier = self.places_at(moments[middle], job, attempt)
            if earlier is None:
                least = middle + 1
            else:
                places, most = earlier, middle
        return self._reserved_at(job, moments[most], places)

    def places_at(
        self, moment: float, job: Job, attempt: Attempt, promised: Iterable[tuple[Ints, Ints]] = ()
    ) -> Places | None:
        """Where the tasks of a job would be placed at a moment; none if it would not start.

        What is promised to others, nodes and amounts of them, is not free then.
        """
        session = self._session
        ended = self._ends.tasks_in(self._ended_by(moment))
        with session.rehearsal():
            for task in ended:
                self._end(task)
            for rows, amounts in promised:
                for row, amount in zip(rows.tolist(), amounts.T, strict=True):
                    vector = dict(enumerate(amount.tolist()))
                    session.journal.record(partial(self._columns.promise, row, vector, -1))
                    self._columns.promise(row, vector, 1)
            if not attempt():
                return None
            held = (Status.ALLOCATED, Status.PIPELINED)
            return {task: task.node for status in held for task in job.by_status[status] if task.node}

    def _end(self, task: Task) -> None:
        """End a task in a rehearsal; one with devices is releasing, as these come free with their claim."""
        session = self._session
        if session.cluster.devices.concerns(task.shape.spec):
            session.journal.move(task, Status.RELEASING, task.node)
        else:
            session.journal.move(task, Status.SUCCEEDED, None)

    # -- the result

    def _amounts_of(self, places: Places) -> tuple[Ints, Ints]:
        """The nodes of places, by row, and what the tasks there take of each: (resource, place in rows)."""
        by_row: dict[int, Ints] = {}
        for task, node in places.items():
            by_row[node.row] = by_row.get(node.row, 0) + task.shape.dense(len(self._columns.idle))
        rows = np.array(sorted(by_row), dtype=np.int64)
        return rows, np.stack([by_row[row] for row in rows.tolist()], axis=1)

    def reservation_at(
        self, moment: float, job: Job, attempt: Attempt, promised: Iterable[tuple[Ints, Ints]]
    ) -> StartReservation | None:
        """What a job would take at a moment beside what is promised to others; none if it would not start."""
        places = self.places_at(moment, job, attempt, promised)
        return None if places is None else self._reserved_at(job, moment, places)

    def _reserved_at(self, job: Job, start: float, places: Places) -> StartReservation:
        return self._reserved(job, start, *self._amounts_of(places), places)

    def _reserved(
        self, job: Job, start: float, rows: Ints, amounts: Ints, places: Places
    ) -> StartReservation:
        session = self._session
        shapes = {task.shape for task in places}
        ledgers = frozenset(ledger for shape in shapes for ledger in session.cluster.ledgers_of(shape))
        alone = not all(
            session.evaluation(task).goes_by_numbers or _needs_no_company(task, ledgers) for task in places
        )
        spare = self._free_at(start, rows) - amounts
        nodes = tuple(self._columns.nodes[row] for row in rows.tolist())
        return StartReservation(job, start, nodes, rows, amounts, spare, places, alone, ledgers)

    def _free_at(self, moment: float, rows: Ints) -> Ints:
        freed = self._ends.freed(self._ended_by(moment), len(self._columns))
        free: Ints = self._columns.future_idle[:, rows] + freed[:, rows]
        return free

    def _holds(self, last: StartReservation) -> bool:
        """Whether the promised amounts will still be free."""
        if last.start < self._session.reads.time or len(last.amounts) != len(self._columns.idle):
            return False
        return bool((self._free_at(last.start, last.rows) >= last.amounts)[last.amounts > 0].all())

    def _kept(self, last: StartReservation) -> StartReservation:
        last.spare = self._free_at(last.start, last.rows) - last.amounts
        return last

    def _ended_by(self, moment: float) -> Ints:
        """The slots of tasks that are expected to have ended by a moment, the first to end first."""
        return self._order[: int(np.searchsorted(self._moments, moment, side="right"))]

    def ending_before(self, start: float, rows: Ints) -> list[Task]:
        """The tasks on some nodes that are expected to end before a start, the first to end first."""
        slots = self._ended_by(start)
        return self._ends.tasks_in(slots[np.isin(self._ends.requests(slots)[1], rows)])

    def promise(self, start: float, nodes: Iterable[Node], ending: Iterable[Task]) -> Promise:
        """What is reported of a start on some nodes, for which these tasks have to end."""
        after = dict.fromkeys(task.job.key for task in ending if task.job)
        is_overdue = start <= self._session.reads.time
        return Promise(start, tuple(node.name for node in nodes), tuple(after), is_overdue)


def _needs_no_company(task: Task, ledgers: frozenset[Ledger]) -> bool:
    """Whether filters depend on what its tasks hold besides amounts, and not on other pods."""
    spec = task.shape.spec
    return bool(ledgers) and spec.affinity is None and not spec.topology_spread_constraints


def is_refused_by_queue(session: Session, job: Job) -> bool:
    """Whether the limits of its queue do not allow a job to start now."""
    queue, rules = job.queue, session.rules
    tasks, needed = _kinds_to_start(session, job)
    return queue is None or not all(
        rules.allocatable(queue, task) and rules.may_allocate(queue, task, needed) for task in tasks
    )


def is_limited_by_queue(session: Session, job: Job) -> bool:
    """Whether the limits of its queue keep a job pending though nodes may have capacity for it."""
    if not is_refused_by_queue(session, job):
        return False
    tasks, needed = _kinds_to_start(session, job)
    free = session.cluster.columns.future_idle
    return all(
        int(slots(task.shape, free[:, session.evaluation(task).allowed]).sum()) >= needed for task in tasks
    )


def _kinds_to_start(session: Session, job: Job) -> tuple[list[Task], int]:
    """A pending task of each shape of a job, and the number of each that must start: at least one."""
    first_of_shape = {task.shape: task for task in job.by_status[Status.PENDING]}
    needed = session.rules.tasks_needed(job) if len(first_of_shape) == 1 else 1
    return list(first_of_shape.values()), needed
