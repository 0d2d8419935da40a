"""Conservative backfill: every job without capacity is promised a start, and no later job delays it."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from functools import cache
from itertools import islice
from math import inf
from typing import TYPE_CHECKING, Any

import numpy as np

from stromboli.engine.placement.node_functions import Check, NodeFilter, Nodes
from stromboli.engine.plugin import Attempt, HeldBack, Promise
from stromboli.model.status import Status
from stromboli.plugins.backfill_reservation.availability_profile import (
    LEAST_READ,
    AvailabilityProfile,
    Booking,
    kinds_of,
)
from stromboli.plugins.backfill_reservation.plugin import RESERVED, BackfillArguments, BackfillReservation
from stromboli.plugins.backfill_reservation.reservation_search import ReservationSearch, is_limited_by_queue

if TYPE_CHECKING:
    from stromboli.engine.session import Session
    from stromboli.engine.waiting.ordered_waits import Bools, WaitingColumns
    from stromboli.model.cluster import Change, Dirty
    from stromboli.model.job import Job
    from stromboli.model.node_columns import Ints, Node
    from stromboli.model.shape import Shape
    from stromboli.model.task import Task

log = logging.getLogger(__name__)
MAX_UNPROMISED = 64
"""Jobs without a promise that have a turn in a cycle in which nothing about them changed."""
MAX_CELLS = 2**23
"""Numbers in the profile of what will be free: steps in time, times resources, times nodes."""
MAX_DELAY = 60.0
"""Seconds by which a job may start late, as pods are still terminating, before other promises are moved."""
MAX_READ = 2**24
"""Numbers of the profile that a cycle reads to promise starts, and as many to improve promises; then the next does."""
MAX_TRIALS = 32
"""Moments at which a job is tried whose places depend on more than amounts; of more, some are left out."""
MAX_SEARCHES = 8
"""Jobs in a cycle for which such moments are tried; others have their turn in the next."""
_IS_POSTPONED = HeldBack(
    "many earlier jobs have a reserved start",
    "many earlier jobs have a reserved start",
    "no action needed: it is considered in one of the next cycles",
)
_WOULD_DELAY = HeldBack(
    "it would delay jobs that have a reserved start",
    "it would delay jobs that have a reserved start",
    "a shorter time limit lets it start earlier",
)


class ConservativeBackfill(BackfillReservation):
    """`mode: conservative`: the promised starts, and what will be free beside them."""

    def __init__(self, arguments: BackfillArguments, switches: dict[str, bool]):
        super().__init__(arguments, switches)
        self._profile = AvailabilityProfile(0.0, np.zeros((0, 0), dtype=np.int64))
        self._bookings: dict[Job, Booking] = {}
        self._unpromised: dict[Job, None] = {}
        """Jobs that could not start and were promised nothing, in the order of their turns."""
        self._postponed: dict[Job, None] = {}
        """Jobs that are promised a start in one of the next cycles, as this one had no time, in the same order."""
        self._to_improve: dict[Job, None] = {}
        """Jobs that may start earlier than promised since something ended early, in the order of their turns."""
        self._hopeless: set[Job] = set()
        """Jobs without capacity at any moment, as long as none is released unexpectedly."""
        self._searches_left = MAX_SEARCHES
        self._window = 0.0, inf
        """The period for which places are searched."""
        self._read_before = 0
        """Numbers of the profile that were read before the turns of this session."""
        self._has_logged_depth = False

    # -- sessions

    def opening(self, session: Session, dirty: Dirty) -> None:
        super().opening(session, dirty)
        self._searches_left = MAX_SEARCHES
        self._cancel_changed(session, dirty)
        self._update_profile(session, dirty)
        self._improve()
        self._read_before = self._profile.read

    def _update_profile(self, session: Session, dirty: Dirty) -> None:
        free, profile = session.cluster.columns.future_idle, self._profile
        late = any(map(self._is_late, self._bookings.values()))
        if dirty.everything or dirty.nodes:
            # Other nodes may be usable, in other rows than before: they are looked up in the turn of the job.
            for booking in self._bookings.values():
                booking.usable = None
        if dirty.everything or dirty.nodes or self._ends.was_rebuilt or self._ends.overdue() or late:
            self._rebuild(session)
            return
        profile.forget(self._now)
        self._follow()
        if not np.array_equal(profile.now, self._booked_now(free)):
            self._rebuild(session)
        elif self._ends.ended_early or self._cancelled:
            profile.merge_steps()
            waiting = sorted(self._bookings.values(), key=lambda booking: booking.start)
            self._to_improve.update(dict.fromkeys(booking.job for booking in waiting))

    def _cancel_changed(self, session: Session, dirty: Dirty) -> None:
        """Cancel the promises of pending jobs that changed; each gets a new one in its turn."""
        self._cancelled = False
        if dirty.everything:  # all have a turn
            self._unpromised, self._postponed = {}, {}
        for job in list(self._bookings) if dirty.everything else [*dirty.jobs]:
            if job not in session.cluster.backlog:
                self._unpromised.pop(job, None)
                self._postponed.pop(job, None)
            self._hopeless.discard(job)
            booking = self._bookings.get(job)
            if booking is not None and not self._is_as_booked(session, booking):
                self._cancel(job)
                self._cancelled = True
        self._capacity_came |= self._cancelled
        if self._capacity_came:
            self._hopeless.clear()

    def _is_as_booked(self, session: Session, booking: Booking) -> bool:
        job = booking.job
        return (
            job in session.cluster.backlog
            and kinds_of(job) == booking.kinds
            and session.rules.tasks_needed(job) == booking.needed
            and booking.start + self._ends.limit_of(job) == booking.end
        )

    def _follow(self) -> None:
        """Count what started and ended since the last session."""
        for sign, row, vector, end in self._ends.changes:
            change = self._profile.take if sign > 0 else self._profile.free
            change(self._now, end, np.array([row]), vector[:, None])

    def _booked_now(self, free: Ints) -> Ints:
        """What is free now and not promised to jobs that are due."""
        left = free.copy()
        for booking in self._due():
            left[:, booking.rows] -= booking.amounts
        return left

    def _is_late(self, booking: Booking) -> bool:
        """Whether a job could not start for so long that those behind it are promised other starts."""
        return booking.start < self._now - MAX_DELAY

    def _due(self) -> list[Booking]:
        return [booking for booking in self._bookings.values() if booking.start <= self._now]

    def _rebuild(self, session: Session) -> None:
        """Make the profile again from running tasks, and promise again what was promised, the earliest first."""
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
                self._promise_again(booking)
            else:
                self._keep(booking)

    def _improve(self) -> None:
        """Let pending jobs start earlier where something ended early, as many as a cycle has time for."""
        profile, most = self._profile, self._profile.read + MAX_READ
        while self._to_improve and profile.read < most:
            job = next(iter(self._to_improve))
            del self._to_improve[job]
            booking = self._bookings.get(job)
            if booking is None or booking.usable is None or booking.start <= self._now:
                continue
            if booking.may_improve(profile, booking.usable):
                profile.take(booking.start, booking.end, booking.rows, booking.amounts, -1)
                self._promise_again(booking)
                if self._bookings.get(job) is not booking:
                    profile.note_freed(booking.rows)
            if job in self._bookings:
                self._bookings[job].frees = profile.frees

    def _promise_again(self, booking: Booking) -> None:
        """Book the earliest slots for a job whose booking was taken out; the same as before if these are as good."""
        if self._is_late(booking):
            booking.start = self._now
        booking.end = booking.start + self._ends.limit_of(booking.job)
        holds, earlier = booking.holds(self._profile), None
        if booking.usable is not None:
            (shape,) = booking.kinds
            before = booking.start if holds else inf
            earlier = self._earliest(booking.job, shape, booking.needed, booking.usable, before)
        if earlier is not None or holds:
            self._book(earlier or booking)
        else:
            self._lose(booking.job)

    def _keep(self, booking: Booking) -> None:
        """Book the same as before for now, if it still holds: there was no time to look for better."""
        booking.end = booking.start + self._ends.limit_of(booking.job)
        if not booking.holds(self._profile):
            self._lose(booking.job)
            return
        self._book(booking)
        booking.frees = -1
        self._to_improve[booking.job] = None

    def _lose(self, job: Job) -> None:
        """Drop a promise that does not hold; the job gets a new one in its turn."""
        self._bookings.pop(job, None)
        self._postponed[job] = None

    def closing(self, session: Session) -> None:
        self._report_shares(session)
        for job, booking in self._bookings.items():
            if not booking.is_reported:
                booking.is_reported = True
                session.reports.news[job] = None
        if self._to_improve or self._is_spent() or not self._searches_left:
            session.has_come(self._next_cycle)
        session.has_come(min([self._ends.next_end(), *self._starts_to_come()]))
        self._look_again(session)

    def _starts_to_come(self) -> Iterator[float]:
        yield from super()._starts_to_come()
        yield from (booking.start for booking in self._bookings.values() if booking.start > self._now)

    def on_move(self, change: Change) -> None:
        super().on_move(change)
        job = change.task.job
        if change.status is Status.BINDING and job in self._bookings and not self._searching:
            self._cancel(job)

    def _take_node(self, task: Task, node: Node, sign: int) -> None:
        if task.job is None:
            return
        profile = self._profile
        change_free = profile.take if sign > 0 else profile.free
        vector, end = task.shape.dense(len(profile.now))[:, None], self._now + self._ends.limit(task)
        change_free(self._now, end, np.array([node.row]), vector)
        own = self._cleared.get(task)
        if own is not None:  # it was taken off already
            profile.take(self._now, inf, np.array([own.row]), own.amount[:, None], -sign)
        self._version += 1

    # -- the gate

    def admitted_early(self, job: Job) -> bool:
        """As many jobs as are promised a start, and others that may start now."""
        promised = len(self._bookings) + len(self._early.entering)
        in_depth = promised < self.arguments.depth and self._is_start_known(job)
        return in_depth or self._may_start_now(job)

    def _has_reservations(self) -> bool:
        return bool(self._bookings) or super()._has_reservations()

    # -- promising

    def no_room(self, job: Job, attempt: Attempt) -> None:
        self._book_nodes(job, attempt)
        booking = self._bookings.get(job)
        self._reserve_share(job, None if booking is None else max(booking.start, self._now))

    def _book_nodes(self, job: Job, attempt: Attempt) -> None:
        """Promise a start to a job that waits for capacity of nodes."""
        if not job.tasks:
            return
        booking = self._bookings.get(job)
        waits = booking is not None and booking.start > self._now
        if booking is not None and waits and (booking.usable is not None or not self._capacity_came):
            return
        if booking is None and self._is_spent():
            self._postponed[job] = None
            return
        self._postponed.pop(job, None)
        if not waits and (self._is_limited(job) or job in self._hopeless):
            self._unpromised[job] = None
            return
        if booking is not None:
            self._cancel(job)
        kept = booking if waits else None
        found = self._search(job, attempt, kept) if self._has_depth() else kept
        self._log_depth(job)
        if found is None:
            self._unpromised[job] = None
        else:
            self._unpromised.pop(job, None)
            self._book(found)

    def _is_limited(self, job: Job) -> bool:
        self._searching = True  # what is promised to other jobs is no limit of a queue
        try:
            return is_limited_by_queue(self.session, job)
        finally:
            self._searching = False

    def _log_depth(self, job: Job) -> None:
        """Warn once that jobs are promised nothing for the sake of time and memory."""
        if not self._has_logged_depth and not self._has_depth():
            self._has_logged_depth = True
            log.warning(
                "%s: %d jobs are promised a start; jobs after them, such as %s, are promised none until some of those"
                " have started: give a larger `depth`, or `mode: easy`",
                self.name,
                len(self._bookings),
                job.key,
            )

    def _has_depth(self) -> bool:
        return len(self._bookings) < self.arguments.depth and self._profile.cells < MAX_CELLS

    def _is_spent(self) -> bool:
        """Whether this cycle has promised as much as it has time for; then no later job starts before the next one."""
        return self._profile.read - self._read_before >= MAX_READ

    def _search(self, job: Job, attempt: Attempt, kept: Booking | None) -> Booking | None:
        """The earliest slots for a job; what was promised to it before, if that is as early."""
        search = ReservationSearch(self.session, self._ends)
        self._searching = True
        try:
            task = search.plain_task(job)
            if task is not None and self._is_spent():
                return kept
            if task is not None:
                needed = self.session.rules.tasks_needed(job)
                return self._earliest(job, task.shape, needed, search.usable_rows(task))
            if not self._searches_left:
                return kept
            return self._by_trials(search, job, attempt, inf if kept is None else kept.start) or kept
        finally:
            self._searching = False

    def _by_trials(
        self, search: ReservationSearch, job: Job, attempt: Attempt, before: float
    ) -> Booking | None:
        """The first of some moments at which the ordinary search finds places, beside all that is promised by then."""
        self._searches_left -= 1
        moments = self._profile.times[self._profile.times < before].tolist()
        if not moments:
            return None
        *earlier, latest = _some_of(moments)
        last = self._booking_at(latest, search, job, attempt)
        if last is None:
            self._hopeless.add(job)
            return None
        tried = (self._booking_at(moment, search, job, attempt) for moment in earlier)
        return next((booking for booking in tried if booking is not None), last)

    def _booking_at(
        self, moment: float, search: ReservationSearch, job: Job, attempt: Attempt
    ) -> Booking | None:
        """The places of a job that starts at a moment; None if it would not start."""
        self._window = moment, moment + self._ends.limit_of(job)
        self._version += 1
        within = [booking for booking in self._bookings.values() if booking.is_within(*self._window)]
        promised = [(booking.rows, booking.amounts) for booking in within]
        reservation = search.reservation_at(moment, job, attempt, promised)
        if reservation is None:
            return None
        rows, amounts = reservation.rows, reservation.amounts
        if reservation.alone:  # nothing is left beside it
            amounts = self.session.cluster.columns.allocatable[:, rows]
        taken = (*self._window, reservation.nodes, rows, amounts)
        needed = self.session.rules.tasks_needed(job)
        return Booking(job, *taken, kinds_of(job), needed, None, reservation.ledgers)

    def promised(self, job: Job) -> Promise | None:
        booking = self._bookings.get(job)
        if booking is None:
            return super().promised(job)
        if booking.promise is None:
            search = ReservationSearch(self.session, self._ends)
            ending = search.ending_before(booking.start, booking.rows)
            booking.promise = search.promise(booking.start, booking.nodes, ending)
        return booking.promise

    # -- bookings

    def _earliest(
        self, job: Job, shape: Shape, needed: int, usable: Ints, before: float = inf
    ) -> Booking | None:
        """The earliest slots for equal tasks of a job on some nodes, before a moment."""
        limit, columns = self._ends.limit_of(job), self.session.cluster.columns
        found = self._profile.earliest(shape, needed, limit, usable, before)
        if found is None:
            return None
        amounts = shape.dense(len(columns.idle))[:, None] * found.counts
        nodes = tuple(columns.nodes[row] for row in found.rows.tolist())
        taken = (found.start, found.start + limit, nodes, found.rows, amounts)
        return Booking(job, *taken, kinds_of(job), needed, usable)

    def _book(self, booking: Booking) -> None:
        self._profile.take(booking.start, booking.end, booking.rows, booking.amounts)
        self._bookings[booking.job] = booking
        booking.frees = self._profile.frees
        self._version += 1

    def _cancel(self, job: Job) -> None:
        booking = self._bookings.pop(job)
        self._profile.free(booking.start, booking.end, booking.rows, booking.amounts)
        self._version += 1

    # -- jobs that may start

    def held_back(self, job: Job) -> HeldBack | None:
        share = super().held_back(job)
        if share is not None or job.reserved:
            return share
        booking = self._bookings.get(job)
        if booking is None and self._is_spent():
            return _IS_POSTPONED
        waits = booking is not None and booking.start > self._now and booking.usable is not None
        return _WOULD_DELAY if waits else None

    def may_overtake(self, waiting: WaitingColumns) -> Ints | None:
        due = [booking.job for booking in self._due()]
        few = MAX_UNPROMISED
        fitting = waiting.may_fit(self.session.cluster.columns.future_idle)
        unpromised = [job for job in list(self._unpromised)[: few * few] if job in waiting.slots]
        if not self._has_depth():
            unpromised = [job for job in unpromised if fitting[waiting.slots[job]]]
        postponed = islice(self._postponed, MAX_READ // LEAST_READ + 1)
        chosen = (*due, *postponed, *unpromised[:few], *self._promised_by_search())
        slots = {waiting.slots[job] for job in chosen if job in waiting.slots}
        slots.update(self._slots_of_shares(waiting))
        slots.update(self._not_held_back(waiting, fitting), self._without_turn(waiting))
        return np.array(sorted(slots), dtype=np.int64)

    def _promised_by_search(self) -> list[Job]:
        """The jobs for which an earlier start is searched in their turn, as capacity was released unexpectedly."""
        return [
            job for job, booking in self._bookings.items() if self._capacity_came and booking.usable is None
        ]

    def _not_held_back(self, waiting: WaitingColumns, fitting: Bools) -> Iterator[int]:
        """The slots of jobs that may fit now and wait for no moment.

        These have more pods than they needed to start, so nothing is promised to them, or a search found their places.
        """
        for slot in np.flatnonzero(fitting).tolist():
            job = waiting.jobs[slot]
            if job is not None and job not in self._unpromised and job not in self._postponed:
                booking = self._bookings.get(job)
                if booking is None or booking.usable is None:
                    yield slot

    def _without_turn(self, waiting: WaitingColumns) -> Iterator[int]:
        """The slots of jobs that had no turn because their queue was overused, and no longer is."""
        is_overused = cache(self.session.rules.overused)
        for slot in np.flatnonzero(~waiting.had_turn).tolist():
            job = waiting.jobs[slot]
            if job is not None and job.queue is not None and not is_overused(job.queue):
                yield slot

    def shape_key(self, task: Task) -> Any:
        if task.job is None or task.best_effort:
            return None
        if self._searching and not self.session.cluster.ledgers_of(task.shape):
            return True  # no filter of this plugin applies
        booked, own = task.job.id if task.job in self._bookings else None, self._cleared.get(task)
        return self._searching, self._ends.limit(task), booked, None if own is None else own.row

    def node_filters(self, task: Task) -> Iterator[NodeFilter]:
        if task.job is None or task.best_effort:
            return
        if self.session.cluster.ledgers_of(task.shape):
            yield NodeFilter(self._beside_ledgers, self.name, "pods", lambda _: self._filter_version())
        if not self._searching:
            yield NodeFilter(self._beside_promises, self.name, "pods", lambda _: self._filter_version())

    def _beside_ledgers(self, task: Task, nodes: Nodes) -> Iterator[Check]:
        """Keep a task off nodes where other jobs are promised what it needs besides amounts, for that period."""
        if self._is_evicting():
            return
        ledgers = self.session.cluster.ledgers_of(task.shape)
        window = self._window if self._searching else (self._now, self._end_of(task))
        passes = nodes.all()
        for job, booking in self._bookings.items():
            if job is not task.job and booking.is_within(*window) and not booking.ledgers.isdisjoint(ledgers):
                passes[booking.rows] = False
        self._pass_own(task, passes)
        yield Check(passes, RESERVED)

    def _end_of(self, task: Task) -> float:
        """When a task ends if it starts now: of a job that is due, as promised, though it may start a little late."""
        end, booking = self._now + self._ends.limit(task), self._bookings.get(task.job) if task.job else None
        return end if booking is None or booking.start > self._now else min(end, booking.end)

    def _beside_promises(self, task: Task, nodes: Nodes) -> Iterator[Check]:
        """Keep a task off nodes where it may run into what is promised to other jobs."""
        if task.job is None or self._is_evicting():
            return
        end, booking = self._end_of(task), self._bookings.get(task.job)
        if booking is not None:
            self._profile.take(booking.start, booking.end, booking.rows, booking.amounts, -1)
        least = self._profile.least(self._now, end)
        if booking is not None:
            self._profile.take(booking.start, booking.end, booking.rows, booking.amounts)
        passes = nodes.all()
        for dim, amount in task.shape.request.items():
            if amount > 0:
                passes &= least[dim] >= amount
        self._pass_own(task, passes)
        yield Check(passes, RESERVED)


def _some_of(moments: list[float]) -> list[float]:
    """At most `MAX_TRIALS` of them: the first, then some up to the last."""
    if len(moments) <= MAX_TRIALS:
        return moments
    first = MAX_TRIALS // 2
    later = np.linspace(first, len(moments) - 1, MAX_TRIALS - first).astype(np.int64)
    return [*moments[:first], *(moments[place] for place in later.tolist())]
