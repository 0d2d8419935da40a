"""The starts that are promised in conservative backfill, kept up with what starts, ends and changes."""

from __future__ import annotations

from collections.abc import Iterator
from math import inf
from typing import TYPE_CHECKING, Any

import numpy as np

from stromboli.model.status import Status
from stromboli.plugins.backfill_reservation.availability_profile import (
    AvailabilityProfile,
    Booking,
    EarliestSlots,
    kinds_of,
)
from stromboli.plugins.backfill_reservation.plugin import PLACED, BackfillReservation

if TYPE_CHECKING:
    from collections.abc import Collection

    from stromboli.engine.plugin import Attempt
    from stromboli.engine.session import Session
    from stromboli.model.cluster import Change, Dirty
    from stromboli.model.job import Job
    from stromboli.model.node_columns import Ints
    from stromboli.model.shape import Shape
    from stromboli.plugins.backfill_reservation.reservation_search import ReservationSearch


MAX_CELLS = 2**23
"""Numbers in the profile of what will be free: steps in time, times resources, times nodes."""
MAX_READ = 2**24
"""Numbers of the profile that a cycle reads to promise starts, and as many to improve promises; then the next does."""


class PromisedStarts(BackfillReservation):
    """The promises of conservative backfill, and what will be free beside them."""

    def __init__(self, arguments: Any, switches: dict[str, bool]):
        super().__init__(arguments, switches)
        self._profile: AvailabilityProfile | None = None
        self._bookings: dict[Job, Booking] = {}
        self._unpromised: dict[Job, None] = {}
        """Jobs that could not start and were promised nothing, in the order of their turns."""
        self._postponed: dict[Job, None] = {}
        """Jobs that are to be promised a start in the next cycles, as one had no time for them, in the same order."""
        self._trials = StartTrials()
        self._to_improve: dict[Job, None] = {}
        """Jobs that may start earlier than promised since something ended early, in the order of their turns."""
        self._read_before = 0
        """Numbers of the profile that were read before the turns of this session."""

    # -- sessions

    def opening(self, session: Session, dirty: Dirty) -> None:
        super().opening(session, dirty)
        self._trials.searches_left = MAX_SEARCHES
        self._cancel_changed(session, dirty)
        self._update_profile(session, dirty)
        assert self._profile is not None
        self._improve(self._profile)
        self._read_before = self._profile.read

    def _update_profile(self, session: Session, dirty: Dirty) -> None:
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
            profile.merge_steps()
            waiting = sorted(self._bookings.values(), key=lambda booking: booking.start)
            self._to_improve.update(dict.fromkeys(booking.job for booking in waiting))

    def _cancel_changed(self, session: Session, dirty: Dirty) -> None:
        """Jobs that changed while they waited are promised anew when they have their turn."""
        self._cancelled = False
        if dirty.everything:  # all have a turn
            self._unpromised, self._postponed = {}, {}
        for job in list(self._bookings) if dirty.everything else [*dirty.jobs]:
            if job not in session.cluster.backlog:
                self._unpromised.pop(job, None)
                self._postponed.pop(job, None)
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
            change = profile.take if sign > 0 else profile.free
            change(self._now, end, np.array([row]), vector[:, None])

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
        self._bookings, self._to_improve = {}, {}
        profile.add_steps(np.array([(booking.start, booking.end) for booking in bookings]).ravel())
        for booking in bookings:
            if not booking.is_there(len(columns.idle)):
                self._lose(booking.job)
            elif profile.read < MAX_READ:
                self._promise_again(profile, booking)
            else:
                self._keep(profile, booking)

    def _improve(self, profile: AvailabilityProfile) -> None:
        """Let those who wait start earlier where something ended early, as many as a cycle has time for."""
        most = profile.read + MAX_READ
        while self._to_improve and profile.read < most:
            job = next(iter(self._to_improve))
            del self._to_improve[job]
            booking = self._bookings.get(job)
            if booking is None or booking.usable is None or booking.start <= self._now:
                continue
            if booking.may_improve(profile, booking.usable):
                profile.take(booking.start, booking.end, booking.rows, booking.amounts, -1)
                self._promise_again(profile, booking)
                if self._bookings[job] is not booking:
                    profile.note_freed(booking.rows)
            self._bookings[job].frees = profile.frees

    def _promise_again(self, profile: AvailabilityProfile, booking: Booking) -> None:
        """Book the earliest room for a job whose booking was taken out; the same as before if that is as good."""
        limit, slot, usable = self._limit(booking.job), None, booking.usable
        booking.end = booking.start + limit
        holds = booking.holds(profile)
        if usable is not None:
            (shape,) = booking.kinds
            slot = profile.earliest(shape, booking.needed, limit, usable, booking.start if holds else inf)
        if usable is not None and slot is not None:
            self._book(self._booking(booking.job, shape, booking.needed, limit, usable, slot))
        elif holds:
            self._book(booking)
        else:
            self._lose(booking.job)

    def _keep(self, profile: AvailabilityProfile, booking: Booking) -> None:
        """Book the same as before for now, if it is there: there was no time to look for better."""
        booking.end = booking.start + self._limit(booking.job)
        if not booking.holds(profile):
            self._lose(booking.job)
            return
        self._book(booking)
        booking.frees = -1
        self._to_improve[booking.job] = None

    def _lose(self, job: Job) -> None:
        """A job whose promise does not hold is promised anew when it has its turn."""
        self._bookings.pop(job, None)
        self._postponed[job] = None

    def closing(self, session: Session) -> None:
        self._report_shares(session)
        for job, booking in self._bookings.items():
            if not booking.is_told:
                booking.is_told = True
                session.reports.news[job] = None
        if self._to_improve or self._is_spent() or not self._trials.searches_left:
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
            change_room = profile.take if placed else profile.free
            change_room(self._now, end, np.array([node.row]), vector)
            own = self._cleared.get(task)
            if own is not None:  # it was taken off already
                profile.take(self._now, inf, np.array([own.row]), own.amount[:, None], -1 if placed else 1)
            self._version += 1
        if change.status is Status.BINDING and task.job in self._bookings:
            self._cancel(task.job)

    # -- bookings

    def _is_spent(self) -> bool:
        """Whether this cycle has promised as much as it has time for; then nobody after that starts before the next."""
        return self._profile is not None and self._profile.read - self._read_before >= MAX_READ

    def _booking(
        self, job: Job, shape: Shape, needed: int, limit: float, usable: Ints, slot: EarliestSlots
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
        booking.frees = self._profile.frees
        self._version += 1

    def _cancel(self, job: Job) -> None:
        booking = self._bookings.pop(job)
        if self._profile is not None:
            self._profile.free(booking.start, booking.end, booking.rows, booking.amounts)
        self._version += 1

    def _limit(self, job: Job) -> float:
        return max((self._ends.limit(task) for task in job.by_status[Status.PENDING]), default=inf)


# -- when a job could start whose places more than amounts decide: the ordinary search is tried at some moments


MAX_TRIALS = 32
"""Moments at which a job is tried whose places more than amounts decide; of more, some are left out."""
MAX_SEARCHES = 8
"""Jobs in a cycle for which such moments are tried; others have their turn in the next."""


class StartTrials:
    """Trials of jobs at moments, so many in a session."""

    def __init__(self) -> None:
        self.searches_left = MAX_SEARCHES
        self.window = 0.0, inf
        """The while for which places are searched."""
        self.version = 0
        """Another number for every window."""
        self.hopeless: set[Job] = set()
        """Jobs that had no room at any moment, as long as none comes that was not expected."""

    def earliest(
        self,
        search: ReservationSearch,
        session: Session,
        job: Job,
        attempt: Attempt,
        limit: float,
        moments: list[float],
        bookings: Collection[Booking],
    ) -> Booking | None:
        """The first of some moments at which the ordinary search finds places, beside all that is promised by then."""
        self.searches_left -= 1
        if not moments:
            return None

        def tried_at(moment: float) -> Booking | None:
            self.window = moment, moment + limit
            self.version += 1
            within = [booking for booking in bookings if booking.is_within(*self.window)]
            promised = [(booking.rows, booking.amounts) for booking in within]
            reservation = search.reservation_at(moment, job, attempt, promised)
            if reservation is None:
                return None
            rows, amounts, needed = reservation.rows, reservation.amounts, session.rules.tasks_needed(job)
            if reservation.alone:  # nothing is left beside it
                amounts = session.cluster.columns.allocatable[:, rows]
            taken = (*self.window, reservation.nodes, rows, amounts)
            return Booking(job, *taken, kinds_of(job), needed, None, reservation.ledgers)

        some = _some_of(moments)
        last = tried_at(some[-1])
        if last is None:
            self.hopeless.add(job)
            return None
        tried = (tried_at(moment) for moment in some[:-1])
        return next((booking for booking in tried if booking is not None), last)


def _some_of(moments: list[float]) -> list[float]:
    """Not too many of them: the first, then some up to the last."""
    if len(moments) <= MAX_TRIALS:
        return moments
    first = MAX_TRIALS // 2
    later = np.linspace(first, len(moments) - 1, MAX_TRIALS - first).astype(np.int64)
    return [*moments[:first], *(moments[place] for place in later.tolist())]
