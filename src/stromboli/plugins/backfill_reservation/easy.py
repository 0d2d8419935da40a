"""EASY backfill, and strict order: the first job without capacity, and what is reserved for it."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from math import inf
from typing import TYPE_CHECKING

import numpy as np

from stromboli.engine.placement.node_fit import slots
from stromboli.engine.placement.node_functions import Check, NodeFilter, Nodes
from stromboli.engine.plugin import Attempt, HeldBack, Promise
from stromboli.model.status import Status
from stromboli.plugins.backfill_reservation.plugin import (
    RESERVED,
    BackfillArguments,
    BackfillReservation,
    would_delay,
)
from stromboli.plugins.backfill_reservation.reservation_search import (
    ReservationSearch,
    StartReservation,
    is_limited_by_queue,
)

if TYPE_CHECKING:
    from stromboli.engine.session import Session
    from stromboli.engine.waiting.ordered_waits import Bools, WaitingColumns
    from stromboli.model.cluster import Dirty
    from stromboli.model.job import Job
    from stromboli.model.node_columns import Ints, Node
    from stromboli.model.queue import Queue
    from stromboli.model.shape import Shape
    from stromboli.model.task import Task


MAX_UNPROMISED_JOBS = 32
"""After so many jobs in a cycle without a known start, or held by their queue's limits, no start is promised."""


class EasyBackfill(BackfillReservation):
    """`mode: easy`, and `mode: none`, in which the first job keeps all later ones back.

    It is not `conservative` with a depth of 1: the first job of the order, not the first to be promised a start, has
    the reservation; it may be one of jobs without time limits; and jobs that outrank the first are not held back.
    """

    def __init__(self, arguments: BackfillArguments, switches: dict[str, bool]):
        super().__init__(arguments, switches)
        self._head: Job | None = None
        """The first job without capacity in this session."""
        self._first_turns: tuple[Job, ...] = ()
        """The jobs that keep their places in the next session: those held for capacity being freed, then the head."""
        self._reservation: StartReservation | None = None
        self._promise: Promise | None = None
        self._last_reservation: StartReservation | None = None
        self._last_promise: Promise | None = None
        self._favoured: set[Job | None] = set()
        """The jobs with a reservation at the end of the session before."""

    # -- sessions

    def opening(self, session: Session, dirty: Dirty) -> None:
        super().opening(session, dirty)
        is_there = self._reservation is not None and self._reservation.is_there()
        self._last_reservation = self._reservation if is_there else None
        self._last_promise = self._promise
        self._head = self._reservation = self._promise = None
        self._unpromised_count = 0

    def closing(self, session: Session) -> None:
        last = self._last_reservation
        if self._promise != self._last_promise or (last is not None and last.job is not self._head):
            for job in (self._head, last.job if last is not None else None):
                if job is not None and job.visible:
                    session.reports.news[job] = None
        self._report_shares(session)
        before, self._favoured = self._favoured, {self._head, *(each.job for each in self._shares.values())}
        if self._favoured != before and session.cluster.waiting:
            # which jobs are admitted early depends on the reservations of the cycle before
            session.has_come(self._next_cycle)
        self._keep_places(session)
        session.has_come(self._ends.next_end())
        self._look_again(session)
        reservation = self._reservation
        if reservation is not None and reservation.places and not self._was_tried(reservation):
            session.has_come(max(reservation.start, self._next_cycle))

    def _keep_places(self, session: Session) -> None:
        """Let jobs keep the places that they were promised, until the capacity that is being freed for them is free."""
        promised, before = session.attempts.uncommitted.promised, self._first_turns
        held = (job for job in before if job in promised and job is not self._head)
        self._first_turns = (*held, self._head) if self._head is not None else tuple(held)
        if self._first_turns != before:
            session.has_come(self._next_cycle)

    def _starts_to_come(self) -> Iterator[float]:
        yield from super()._starts_to_come()
        if self._reservation is not None and self._reservation.start > self._now:
            yield self._reservation.start

    def _was_tried(self, reservation: StartReservation) -> bool:
        """Whether the places of a reservation were tried in this session: from its start on, once it is known."""
        last = self._last_reservation
        return last is not None and last.start <= self._now and last.places == reservation.places

    def _take_node(self, task: Task, node: Node, sign: int) -> None:
        reservation = self._reservation
        if reservation is None or not self._stays_beyond(task):
            return
        reservation.take(node.row, task.shape.dense(len(reservation.spare)), sign)
        own = self._cleared.get(task)
        if own is not None:  # it was taken off already
            reservation.take(own.row, own.amount, -sign)
        self._version += 1

    # -- the gate

    def admitted_early(self, job: Job) -> bool:
        """The first waiting job of a queue is admitted, to be promised a start, and jobs that need not wait for it."""
        return (self._early.is_first(job) and self._is_start_known(job)) or self._may_start_now(job)

    def _has_reservations(self) -> bool:
        return self._last_reservation is not None or super()._has_reservations()

    def _free_beside_promises(self, job: Job, free: Ints) -> Ints:
        last = self._last_reservation
        if (
            last is None
            or self._now + self._ends.limit_of(job) <= last.start
            or self._outranks(job, last.job)
        ):
            return free
        return last.beside(free) if len(last.spare) == len(free) else free

    # -- the first job without capacity

    def no_room(self, job: Job, attempt: Attempt) -> None:
        if self._gave_up():
            return
        self._reserve_nodes(job, attempt)
        self._unpromised_count += self._head is None
        reservation = self._reservation if job is self._head else None
        self._reserve_share(job, reservation.start if reservation is not None else None)

    def _gave_up(self) -> bool:
        """Whether too many jobs were promised nothing in this cycle to search on."""
        return self._head is None and self._unpromised_count >= MAX_UNPROMISED_JOBS

    def _reserve_nodes(self, job: Job, attempt: Attempt) -> None:
        """Promise a start to the first job that waits for capacity of nodes."""
        last = self._last_reservation
        known = last if last is not None and last.job is job else None
        if self._head is not None or (known is None and is_limited_by_queue(self.session, job)):
            return
        if known is not None and known.without_pods and job.tasks:
            known = None
        self._searching = True
        try:
            if self.arguments.mode == "none" and job.tasks:
                if ReservationSearch(self.session, self._ends).could_ever_fit(job, attempt):
                    self._head = job
                else:
                    self._early.pass_over(job)
            else:
                self._promise_start(job, attempt, known)
        finally:
            self._searching = False

    def _promise_start(self, job: Job, attempt: Attempt, known: StartReservation | None) -> None:
        """Reserve nodes for a job from its earliest start on; where pods have no time limit, only after a long wait."""
        capacity_came = self._capacity_came or job in self.session.changed.jobs
        for guesses in (False, True) if self._has_waited_long(job) else (False,):
            search = ReservationSearch(self.session, self._ends, guesses)
            if job.tasks:
                reservation = search.reservation(job, attempt, known, capacity_came)
            else:
                reservation = search.reservation_without_pods(job, known)
            if reservation is not None:
                self._head, self._reservation = job, reservation
                self._promise = self._promise_of(reservation, search)
                self._version += 1
                return
        if not job.tasks or not search.could_ever_fit(job, attempt):
            self._early.pass_over(job)

    def _promise_of(self, reservation: StartReservation, search: ReservationSearch) -> Promise | None:
        if reservation is self._last_reservation and self._last_promise is not None:
            return self._last_promise
        ending = search.ending_before(reservation.start, reservation.rows)
        if any(self._ends.limit(task) == inf for task in ending):
            return None  # it is not known when they end
        return search.promise(reservation.start, reservation.nodes, ending)

    def promised_before(self) -> Sequence[Job]:
        return self._first_turns

    def keeps_first_turn(self, job: Job) -> bool:
        return self.arguments.mode == "easy" and self._has_waited_long(job)

    def promised(self, job: Job) -> Promise | None:
        if job is self._head:
            return self._promise
        # with nodes reserved for another job, it is not known when this one starts
        return super().promised(job) if self._head is None else None

    def reserved_places(self, job: Job) -> Mapping[Task, Node] | None:
        last = self._last_reservation
        due = last is not None and last.job is job and last.start <= self._now
        return last.places if last is not None and due else None

    # -- jobs that may overtake it

    def held_back(self, job: Job) -> HeldBack | None:
        held_back, head, reservation = super().held_back(job), self._head, self._reservation
        if held_back is not None or job.reserved:
            return held_back
        if head is None or job is head or self._outranks(job, head):
            return None
        if reservation is None:
            message = f"{head.key} waits for capacity before it, and the policy allows no backfill"
            summary = "an earlier job waits for capacity, and the policy allows no backfill"
            return HeldBack(message, summary, f"set `mode: easy` for plugin {self.name}, or wait")
        return would_delay(reservation.job) if self._delays(job, reservation) else None

    def _delays(self, job: Job, reservation: StartReservation) -> bool:
        """Whether nodes have capacity for a job with one kind of tasks, but only capacity that is reserved."""
        pending = job.by_status[Status.PENDING]
        first = next(iter(pending), None)
        if first is None or not self._must_leave_reserved(first):
            return False
        if any(task.shape is not first.shape for task in pending):
            return False
        free, needed = self.session.cluster.columns.future_idle, self.session.rules.tasks_needed(job)
        if int(slots(first.shape, free).sum()) < needed:
            return False
        return int(slots(first.shape, reservation.beside(free)).sum()) < needed

    def may_overtake(self, waiting: WaitingColumns) -> Ints | None:
        if self._head is None and not self._gave_up():
            return None
        free = self.session.cluster.columns.future_idle
        fitting = waiting.may_fit(free)
        allowed = fitting.copy()
        if self._reservation is not None:
            in_time = self._now + waiting.limits <= self._reservation.start
            allowed = fitting & in_time | waiting.may_fit(self._reservation.beside(free))
        elif self._head is not None:
            allowed[:] = False
        if self._head is not None:
            for slot in np.flatnonzero(fitting & ~allowed).tolist():
                job = waiting.jobs[slot]
                allowed[slot] = job is not None and self._outranks(job, self._head)
        allowed &= self._within_limits(waiting, allowed)
        allowed[self._slots_of_shares(waiting)] = True
        return np.flatnonzero(allowed)

    def _within_limits(self, waiting: WaitingColumns, slots: Bools) -> Bools:
        """Of these slots, those whose jobs the limits of their queues could allow, asked once for jobs of a kind."""
        asked: dict[tuple[Queue, Shape, int, bool], bool] = {}
        within: Bools = np.zeros(len(slots), dtype=bool)
        for slot in np.flatnonzero(slots).tolist():
            job, task = waiting.jobs[slot], waiting.tasks[slot]
            if job is not None and task is not None and job.queue is not None:
                kind = (job.queue, task.shape, waiting.needed(slot), job.has_started)
                if kind not in asked:
                    asked[kind] = self.session.rules.may_allocate(job.queue, task, kind[2])
                within[slot] = asked[kind]
        return within

    def shape_key(self, task: Task) -> Hashable:
        """Whether it may be kept from the nodes of a reservation, and where capacity is held for it."""
        own = self._cleared.get(task)
        return self._must_leave_reserved(task) and (True if own is None else own.row)

    def node_filters(self, task: Task) -> Iterator[NodeFilter]:
        if self._must_leave_reserved(task):
            yield NodeFilter(self._beside_reservation, self.name, "pods", lambda _: self._filter_version())

    def _beside_reservation(self, task: Task, nodes: Nodes) -> Iterator[Check]:
        if self._reservation is not None and not self._is_evicting():
            passes = self._reservation.leaves_reserved(self.session.cluster, task.shape)
            self._pass_own(task, passes)
            yield Check(passes, RESERVED)

    def _must_leave_reserved(self, task: Task) -> bool:
        """Whether a task may only take what the reserved job does not need."""
        reservation, job = self._reservation, task.job
        if reservation is None or not self._stays_beyond(task):
            return False
        return job is None or not self._outranks(job, reservation.job)

    def _outranks(self, job: Job, first: Job) -> bool:
        """Whether a job of another queue has a higher priority than the job to which a start is promised.

        From `reserveAfter` on, that no longer counts.
        """
        if job.queue is None or first.queue is None or job.queue is first.queue:
            return False
        if not self.session.rules.orders_jobs_by_priority:
            return False
        if (job.queue.priority, job.priority) <= (first.queue.priority, first.priority):
            return False
        return not self.keeps_first_turn(first)

    def _stays_beyond(self, task: Task) -> bool:
        """Whether a task may still run when the reserved job is to start."""
        reservation = self._reservation
        if reservation is None or task.job is reservation.job or task.best_effort:
            return False
        return self._now + self._ends.limit(task) > reservation.start
