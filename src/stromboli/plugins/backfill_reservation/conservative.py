"""Conservative backfill: every job that waits for room is promised a start, and nobody who comes later delays it."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from math import inf
from typing import TYPE_CHECKING, Any

import numpy as np

from stromboli.engine.placement.node_functions import Check, NodeFilter, Nodes
from stromboli.engine.plugin import Attempt, HeldBack, Promise
from stromboli.model.status import Status
from stromboli.plugins.backfill_reservation.availability_profile import AvailabilityProfile, Slot
from stromboli.plugins.backfill_reservation.booking import Booking, kinds_of
from stromboli.plugins.backfill_reservation.plugin import PLACED, RESERVED, BackfillReservation
from stromboli.plugins.backfill_reservation.reservation_search import ReservationSearch
from stromboli.plugins.backfill_reservation.start_trials import MAX_SEARCHES, StartTrials

if TYPE_CHECKING:
    from stromboli.engine.session import Session
    from stromboli.engine.waiting.waiting_columns import WaitingColumns
    from stromboli.model.cluster import Change, Dirty
    from stromboli.model.job import Job
    from stromboli.model.node_columns import Ints
    from stromboli.model.shape import Shape
    from stromboli.model.task import Task

log = logging.getLogger(__name__)
MAX_CELLS = 2**23
"""Numbers in the profile of what will be free: steps in time, times resources, times nodes."""
MAX_TRIES = 1000
"""Promises that are tried to be improved in a cycle, after something ended early."""
MAX_UNPROMISED = 64
"""Jobs without a promise that have a turn in a cycle in which nothing about them changed."""


class ConservativeBackfill(BackfillReservation):
    """As the plugin says, with `mode: conservative`."""

    def __init__(self, arguments: Any, switches: dict[str, bool]):
        super().__init__(arguments, switches)
        self._profile: AvailabilityProfile | None = None
        self._bookings: dict[Job, Booking] = {}
        self._unpromised: dict[Job, None] = {}
        """Jobs that could not start and were promised nothing, in the order of their turns."""
        self._trials = StartTrials()
        self._is_depth_told = False

    # -- sessions

    def opening(self, session: Session, dirty: Dirty) -> None:
        super().opening(session, dirty)
        self._trials.searches_left = MAX_SEARCHES
        self._cancel_changed(session, dirty)
        free, profile = session.cluster.columns.future_idle, self._profile
        if (
            profile is None
            or dirty.everything
            or dirty.nodes
            or self._ends.was_rebuilt
            or self._ends.overdue()
        ):
            self._rebuild(session)
            return
        profile.forget(self._now)
        self._follow(profile)
        if not np.array_equal(profile.now, self._booked_now(free)):
            self._rebuild(session)
        elif self._ends.ended_early or self._cancelled:
            self._improve(profile)

    def _cancel_changed(self, session: Session, dirty: Dirty) -> None:
        """Jobs that changed while they waited are promised anew when they have their turn."""
        self._cancelled = False
        for job in list(self._bookings) if dirty.everything else [*dirty.jobs]:
            self._unpromised.pop(job, None)
            self._trials.hopeless.discard(job)
            booking = self._bookings.get(job)
            if booking is not None and not self._is_as_booked(session, booking):
                self._cancel(job)
                self._cancelled = True
        self._room_came |= self._cancelled
        if self._room_came:
            self._trials.hopeless.clear()

    def _is_as_booked(self, session: Session, booking: Booking) -> bool:
        job = booking.job
        return (
            job in session.cluster.backlog
            and kinds_of(job) == booking.kinds
            and session.rules.tasks_needed(job) == booking.needed
            and booking.start + self._limit(job) == booking.end
        )

    def _follow(self, profile: AvailabilityProfile) -> None:
        """Count what started and ended since the last session."""
        for sign, row, vector, end in self._ends.changes:
            profile.take(self._now, end, np.array([row]), vector[:, None], sign)

    def _booked_now(self, free: Ints) -> Ints:
        """What is free now and not promised to jobs that are due."""
        left = free.copy()
        for booking in self._due():
            left[:, booking.rows] -= booking.amounts
        return left

    def _due(self) -> list[Booking]:
        return [booking for booking in self._bookings.values() if booking.start <= self._now]

    def _rebuild(self, session: Session) -> None:
        """Make the profile anew from what runs, and promise again what was promised, the earliest first."""
        columns = session.cluster.columns
        moments, order = self._ends.ordered()
        ends = (moments, *self._ends.requests(order), MAX_CELLS // 2)
        profile = self._profile = AvailabilityProfile.of(self._now, columns.future_idle, *ends)
        bookings = sorted(self._bookings.values(), key=lambda booking: booking.start)
        self._bookings = {}
        for booking in bookings:
            if booking.is_there(len(columns.idle)):  # else it is promised anew when it has its turn
                self._promise_again(profile, booking)

    def _improve(self, profile: AvailabilityProfile) -> None:
        """Something ended early: let those who wait start earlier, the earliest first."""
        waiting = sorted(self._bookings.values(), key=lambda booking: booking.start)
        for booking in waiting[:MAX_TRIES]:
            if booking.usable is not None and booking.start > self._now:
                profile.take(booking.start, booking.end, booking.rows, booking.amounts, -1)
                self._promise_again(profile, booking)

    def _promise_again(self, profile: AvailabilityProfile, booking: Booking) -> None:
        """Book the earliest room for a job whose booking was taken out; the same as before if that is as good."""
        limit, slot, usable = self._limit(booking.job), None, booking.usable
        booking.end = booking.start + limit
        if usable is not None:
            (shape,) = booking.kinds
            slot = profile.earliest(shape, booking.needed, limit, usable)
        still = (profile.least(booking.start, booking.end)[:, booking.rows] >= booking.amounts).all()
        if slot is None and not still:
            self._bookings.pop(booking.job, None)
        elif slot is None or (still and slot.start >= booking.start):
            self._book(booking)
        elif usable is not None:
            self._book(self._booking(booking.job, shape, booking.needed, limit, usable, slot))

    def closing(self, session: Session) -> None:
        for job, booking in self._bookings.items():
            if not booking.is_told:
                booking.is_told = True
                session.news[job] = None
        if not self._trials.searches_left:
            session.has_come(float(np.nextafter(self._now, inf)))
        session.has_come(min([self._ends.next_end(), *self._starts_to_come()]))

    def _starts_to_come(self) -> Iterator[float]:
        return (booking.start for booking in self._bookings.values() if booking.start > self._now)

    def on_move(self, change: Change) -> None:
        super().on_move(change)
        task, profile, node = change.task, self._profile, change.node or change.old_node
        if self._searching or profile is None or node is None or task.job is None:
            return
        placed, was_placed = change.status in PLACED, change.old_status in PLACED
        if placed is not was_placed and Status.PENDING in (change.status, change.old_status):
            vector = task.shape.dense(len(profile.now))[:, None]
            end = self._now + self._ends.limit(task)
            profile.take(self._now, end, np.array([node.row]), vector, 1 if placed else -1)
            self._version += 1
        if change.status is Status.BINDING and task.job in self._bookings:
            self._cancel(task.job)

    # -- promising

    def no_room(self, job: Job, attempt: Attempt) -> None:
        booking = self._bookings.get(job)
        waits = booking is not None and booking.start > self._now
        if booking is not None and waits and (booking.usable is not None or not self._room_came):
            return
        if not waits and (self._is_limited(job) or job in self._trials.hopeless):
            self._unpromised[job] = None
            return
        if booking is not None:
            self._cancel(job)
        kept = booking if waits else None
        found = self._search(job, attempt, kept) if self._has_depth() else kept
        self._tell_of_depth(job)
        if found is None:
            self._unpromised[job] = None
        else:
            self._unpromised.pop(job, None)
            self._book(found)

    def _tell_of_depth(self, job: Job) -> None:
        """Tell once that jobs are promised nothing for the sake of time and memory."""
        if not self._is_depth_told and not self._has_depth():
            self._is_depth_told = True
            log.warning(
                "%s: %d jobs are promised a start; jobs after them, such as %s, are promised none until some of those"
                " have started: give a larger `depth`, or `mode: easy`",
                self.name,
                len(self._bookings),
                job.key,
            )

    def _has_depth(self) -> bool:
        profile = self._profile
        return (
            len(self._bookings) < self.arguments.depth and profile is not None and profile.cells < MAX_CELLS
        )

    def _search(self, job: Job, attempt: Attempt, kept: Booking | None) -> Booking | None:
        """The earliest room for a job; what was promised to it before, if that is as early."""
        search = ReservationSearch(self.session, self._ends)
        self._searching = True
        try:
            task = search.plain_task(job)
            if task is not None:
                return self._by_amounts(job, task)
            if not self._trials.searches_left:
                return kept
            return self._by_trials(search, job, attempt, inf if kept is None else kept.start) or kept
        finally:
            self._searching = False

    def _by_amounts(self, job: Job, task: Task) -> Booking | None:
        assert self._profile is not None
        needed, limit = self.session.rules.tasks_needed(job), self._limit(job)
        usable = np.flatnonzero(self.session.usable(task))
        slot = self._profile.earliest(task.shape, needed, limit, usable)
        return None if slot is None else self._booking(job, task.shape, needed, limit, usable, slot)

    def _by_trials(
        self, search: ReservationSearch, job: Job, attempt: Attempt, before: float
    ) -> Booking | None:
        assert self._profile is not None
        moments = self._profile.times[self._profile.times < before].tolist()
        wanted = (job, attempt, self._limit(job), moments)
        return self._trials.earliest(search, self.session, *wanted, self._bookings.values())

    def _booking(
        self, job: Job, shape: Shape, needed: int, limit: float, usable: Ints, slot: Slot
    ) -> Booking:
        columns = self.session.cluster.columns
        amounts = shape.dense(len(columns.idle))[:, None] * slot.counts
        nodes = tuple(columns.nodes[row] for row in slot.rows.tolist())
        taken = (slot.start, slot.start + limit, nodes, slot.rows, amounts)
        return Booking(job, *taken, kinds_of(job), needed, usable)

    def _book(self, booking: Booking) -> None:
        assert self._profile is not None
        self._profile.take(booking.start, booking.end, booking.rows, booking.amounts)
        self._bookings[booking.job] = booking
        self._version += 1

    def _cancel(self, job: Job) -> None:
        booking = self._bookings.pop(job)
        if self._profile is not None:
            self._profile.take(booking.start, booking.end, booking.rows, booking.amounts, -1)
        self._version += 1

    def _limit(self, job: Job) -> float:
        return max((self._ends.limit(task) for task in job.by_status[Status.PENDING]), default=inf)

    def promised(self, job: Job) -> Promise | None:
        booking = self._bookings.get(job)
        if booking is None:
            return None
        if booking.promise is None:
            ending = ReservationSearch(self.session, self._ends).ending_before(booking.start, booking.rows)
            after = dict.fromkeys(task.job.key for task in ending if task.job)
            names = tuple(node.name for node in booking.nodes)
            booking.promise = Promise(booking.start, names, tuple(after), booking.start <= self._now)
        return booking.promise

    # -- who may start

    def held_back(self, job: Job) -> HeldBack | None:
        booking = self._bookings.get(job)
        waits = booking is not None and booking.start > self._now and booking.usable is not None
        return HeldBack(*_WOULD_DELAY) if waits else None

    def may_overtake(self, waiting: WaitingColumns) -> Ints | None:
        due = [booking.job for booking in self._due()]
        few = MAX_UNPROMISED
        unpromised = [job for job in list(self._unpromised)[: few * few] if job in waiting.slots]
        if not self._has_depth():
            fitting = waiting.may_fit(self.session.cluster.columns.future_idle)
            unpromised = [job for job in unpromised if fitting[waiting.slots[job]]]
        slots = [waiting.slots[job] for job in (*due, *unpromised[:few]) if job in waiting.slots]
        return np.array(sorted(set(slots)), dtype=np.int64)

    def shape_key(self, task: Task) -> Any:
        if task.job is None or task.best_effort:
            return None
        own = task.job.id if task.job in self._bookings else None
        return self._searching, self._ends.limit(task), own

    def node_filters(self, task: Task) -> Iterator[NodeFilter]:
        if task.job is None or task.best_effort:
            return
        if self.session.cluster.ledgers_of(task.shape):
            yield NodeFilter(
                self._beside_ledgers, self.name, "pods", lambda _: self._version + self._trials.version
            )
        if not self._searching:
            yield NodeFilter(
                self._beside_promises, self.name, "pods", lambda _: self._version + self._trials.version
            )

    def _beside_ledgers(self, task: Task, nodes: Nodes) -> Iterator[Check]:
        """A task may not be where others were promised what it needs besides amounts, while they have it."""
        ledgers = self.session.cluster.ledgers_of(task.shape)
        window = self._trials.window if self._searching else (self._now, self._now + self._ends.limit(task))
        passes = nodes.all()
        for job, booking in self._bookings.items():
            if job is not task.job and booking.is_within(*window) and not booking.ledgers.isdisjoint(ledgers):
                passes[booking.rows] = False
        yield Check(passes, RESERVED)

    def _beside_promises(self, task: Task, nodes: Nodes) -> Iterator[Check]:
        """A task may stay as long as it may run without taking what is promised to others."""
        if self._profile is None or task.job is None:
            return
        end = self._now + self._ends.limit(task)
        booking = self._bookings.get(task.job)
        if booking is not None:
            self._profile.take(booking.start, booking.end, booking.rows, booking.amounts, -1)
        least = self._profile.least(self._now, end)
        if booking is not None:
            self._profile.take(booking.start, booking.end, booking.rows, booking.amounts)
        passes = nodes.all()
        for dim, amount in task.shape.request.items():
            if amount > 0:
                passes &= least[dim] >= amount
        yield Check(passes, RESERVED)


_WOULD_DELAY = (
    "it would delay jobs to which a start is promised already",
    "it would delay jobs to which a start is promised already",
    "a shorter time limit lets it start earlier",
)
