"""Conservative backfill: every job that waits for room is promised a start, and nobody who comes later delays it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from math import inf
from typing import TYPE_CHECKING, Any

import numpy as np

from stromboli.engine.placement.node_functions import Check, NodeFilter, Nodes
from stromboli.engine.plugin import Attempt, HeldBack, Promise
from stromboli.model.status import Status
from stromboli.plugins.backfill_reservation.availability_profile import AvailabilityProfile, Slot
from stromboli.plugins.backfill_reservation.plugin import PLACED, RESERVED, BackfillReservation
from stromboli.plugins.backfill_reservation.reservation_search import ReservationSearch

if TYPE_CHECKING:
    from stromboli.engine.session import Session
    from stromboli.engine.waiting.waiting_columns import WaitingColumns
    from stromboli.model.cluster import Change, Dirty
    from stromboli.model.job import Job
    from stromboli.model.node_columns import Ints, Node
    from stromboli.model.shape import Shape
    from stromboli.model.task import Task

MAX_CELLS = 2**23
"""Numbers in the profile of what will be free: steps in time, times resources, times nodes."""
MAX_TRIES = 1000
"""Promises that are tried to be improved in a cycle, after something ended early."""
MAX_TRIALS = 32
"""Moments at which a job is tried whose places more than amounts decide."""
MAX_UNPROMISED = 64
"""Jobs without a promise that have a turn in a cycle in which nothing about them changed."""


@dataclass(slots=True, eq=False)
class Booking:
    """What is promised to a job: from when on, until when, and what of which nodes."""

    job: Job
    start: float
    end: float
    nodes: tuple[Node, ...]
    rows: Ints
    amounts: Ints
    shape: Shape | None = None
    """The shape of its tasks, if they are alike and go by amounts."""
    needed: int = 0
    usable: Ints = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    promise: Promise | None = None


class ConservativeBackfill(BackfillReservation):
    """As the plugin says, with `mode: conservative`."""

    def __init__(self, arguments: Any, switches: dict[str, bool]):
        super().__init__(arguments, switches)
        self._profile: AvailabilityProfile | None = None
        self._bookings: dict[Job, Booking] = {}
        self._unpromised: dict[Job, None] = {}
        """Jobs that could not start and were promised nothing, in the order of their turns."""
        self._slots: dict[Job, Slot | None] = {}

    # -- sessions

    def opening(self, session: Session, dirty: Dirty) -> None:
        self._before = {job: booking.promise for job, booking in self._bookings.items()} if dirty else {}
        super().opening(session, dirty)
        self._slots.clear()
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
        elif self._ends.ended_early or self._freed:
            self._improve(profile)

    def _cancel_changed(self, session: Session, dirty: Dirty) -> None:
        """Jobs that changed while they waited are promised anew when they have their turn."""
        self._freed = False
        for job in list(self._bookings) if dirty.everything else [*dirty.jobs]:
            self._unpromised.pop(job, None)
            booking = self._bookings.get(job)
            if booking is not None and not self._is_as_booked(session, booking):
                self._cancel(job)
                self._freed = True

    def _is_as_booked(self, session: Session, booking: Booking) -> bool:
        job = booking.job
        if job not in session.cluster.backlog or booking.shape is None:
            return False
        first = next(iter(job.by_status[Status.PENDING]), None)
        return (
            first is not None
            and first.shape is booking.shape
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
            rows_now = [node.row for node in booking.nodes]
            dims = len(columns.idle)
            if booking.shape is None or min(rows_now) < 0 or len(booking.amounts) != dims:
                continue  # it is promised anew when it has its turn
            booking.rows = np.array(rows_now, dtype=np.int64)
            self._promise_again(profile, booking)

    def _improve(self, profile: AvailabilityProfile) -> None:
        """Something ended early: let those who wait start earlier, the earliest first."""
        waiting = sorted(self._bookings.values(), key=lambda booking: booking.start)
        for booking in waiting[:MAX_TRIES]:
            if booking.shape is not None and booking.start > self._now:
                profile.take(booking.start, booking.end, booking.rows, booking.amounts, -1)
                self._promise_again(profile, booking)

    def _promise_again(self, profile: AvailabilityProfile, booking: Booking) -> None:
        """Book the earliest room for a job whose booking was taken out; the same as before if that is as good."""
        assert booking.shape is not None
        limit = booking.end - booking.start if booking.end < inf else inf
        slot = profile.earliest(booking.shape, booking.needed, limit, booking.usable)
        still = (profile.least(booking.start, booking.end)[:, booking.rows] >= booking.amounts).all()
        if slot is None and not still:
            self._bookings.pop(booking.job, None)
        elif slot is None or (still and slot.start >= booking.start):
            self._book(booking)
        else:
            self._book(self._booking(booking.job, booking.shape, booking.needed, limit, booking.usable, slot))

    def closing(self, session: Session) -> None:
        for job, booking in self._bookings.items():
            if booking.promise is None:
                booking.promise = self._promise_of_booking(booking)
                session.news[job] = None
        session.has_come(min([self._ends.next_end(), *self._starts_to_come()]))

    def _starts_to_come(self) -> Iterator[float]:
        return (booking.start for booking in self._bookings.values() if booking.start > self._now)

    def on_move(self, change: Change) -> None:
        self._ends.on_move(change)
        task, profile, node = change.task, self._profile, change.node or change.old_node
        if self._searching or profile is None or node is None or task.job is None:
            return
        placed, was_placed = change.status in PLACED, change.old_status in PLACED
        if placed is not was_placed and Status.PENDING in (change.status, change.old_status):
            vector = task.shape.dense(len(profile.now))[:, None]
            end = self._now + self._ends.limit(task)
            profile.take(self._now, end, np.array([node.row]), vector, 1 if placed else -1)
            self._slots.clear()
            self._version += 1
        if change.status is Status.BINDING and task.job in self._bookings:
            self._cancel(task.job)

    # -- promising

    def no_room(self, job: Job, attempt: Attempt) -> None:
        booking = self._bookings.get(job)
        if booking is not None and booking.start > self._now and booking.shape is not None:
            return
        if self._is_limited(job):
            self._unpromised[job] = None
            return
        if booking is not None:
            self._cancel(job)
        found = self._search(job, attempt) if self._has_depth() else None
        if found is None:
            self._unpromised[job] = None
        else:
            self._unpromised.pop(job, None)
            self._book(found)

    def _has_depth(self) -> bool:
        profile = self._profile
        return (
            len(self._bookings) < self.arguments.depth and profile is not None and profile.cells < MAX_CELLS
        )

    def _search(self, job: Job, attempt: Attempt) -> Booking | None:
        search = ReservationSearch(self.session, self._ends)
        self._searching = True
        try:
            task = search.plain_task(job)
            if task is not None:
                slot, limit = self._slot(job, task), self._limit(job)
                needed, usable = self.session.rules.tasks_needed(job), self._usable(task)
                return None if slot is None else self._booking(job, task.shape, needed, limit, usable, slot)
            return self._by_trials(search, job, attempt)
        finally:
            self._searching = False

    def _by_trials(self, search: ReservationSearch, job: Job, attempt: Attempt) -> Booking | None:
        """The first of some moments at which the ordinary search finds places, beside all that is promised by then."""
        profile, limit = self._profile, self._limit(job)
        assert profile is not None
        for moment in profile.times[:MAX_TRIALS].tolist():
            promised = [
                each for each in self._bookings.values() if each.end > moment and each.start < moment + limit
            ]
            places = search.places_at(moment, job, attempt, [(each.rows, each.amounts) for each in promised])
            if places is not None:
                rows, amounts = search.amounts_of(places)
                nodes = tuple(self.session.cluster.columns.nodes[row] for row in rows.tolist())
                return Booking(job, moment, moment + limit, nodes, rows, amounts)
        return None

    def _booking(
        self, job: Job, shape: Shape, needed: int, limit: float, usable: Ints, slot: Slot
    ) -> Booking:
        columns = self.session.cluster.columns
        amounts = shape.dense(len(columns.idle))[:, None] * slot.counts
        nodes = tuple(columns.nodes[row] for row in slot.rows.tolist())
        end = slot.start + limit
        return Booking(job, slot.start, end, nodes, slot.rows, amounts, shape, needed, usable)

    def _book(self, booking: Booking) -> None:
        assert self._profile is not None
        self._profile.take(booking.start, booking.end, booking.rows, booking.amounts)
        self._bookings[booking.job] = booking
        self._slots.clear()
        self._version += 1

    def _cancel(self, job: Job) -> None:
        booking = self._bookings.pop(job)
        if self._profile is not None:
            self._profile.take(booking.start, booking.end, booking.rows, booking.amounts, -1)
        self._slots.clear()
        self._version += 1

    def _slot(self, job: Job, task: Task) -> Slot | None:
        """The earliest room for a job that is promised nothing yet."""
        if job not in self._slots:
            needed = self.session.rules.tasks_needed(job)
            assert self._profile is not None
            self._slots[job] = self._profile.earliest(
                task.shape, needed, self._limit(job), self._usable(task)
            )
        return self._slots[job]

    def _usable(self, task: Task) -> Ints:
        return np.flatnonzero(self.session.usable(task))

    def _limit(self, job: Job) -> float:
        return max((self._ends.limit(task) for task in job.by_status[Status.PENDING]), default=inf)

    def _promise_of_booking(self, booking: Booking) -> Promise:
        return Promise(booking.start, tuple(node.name for node in booking.nodes))

    def promised(self, job: Job) -> Promise | None:
        booking = self._bookings.get(job)
        return None if booking is None else booking.promise or self._promise_of_booking(booking)

    # -- who may start

    def held_back(self, job: Job) -> HeldBack | None:
        booking = self._bookings.get(job)
        if booking is not None:
            waits = booking.start > self._now and booking.shape is not None
            return HeldBack(*_WOULD_DELAY) if waits else None
        first = next(iter(job.by_status[Status.PENDING]), None)
        if first is None or first.best_effort or self._profile is None:
            return None
        if ReservationSearch(self.session, self._ends).plain_task(job) is None:
            return None
        slot = self._slot(job, first)
        return HeldBack(*_WOULD_DELAY) if slot is not None and slot.start > self._now else None

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
        if self._searching or task.job is None or task.best_effort:
            return None
        return (self._ends.limit(task), task.job.id if task.job in self._bookings else None)

    def node_filters(self, task: Task) -> Iterator[NodeFilter]:
        if not self._searching and task.job is not None and not task.best_effort:
            yield NodeFilter(self._beside_promises, self.name, "pods", lambda _: self._version)

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
