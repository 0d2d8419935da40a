"""Conservative backfill: every job that waits for room is promised a start, and nobody who comes later delays it."""

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
from stromboli.plugins.backfill_reservation.availability_profile import LEAST_READ, Booking
from stromboli.plugins.backfill_reservation.plugin import RESERVED
from stromboli.plugins.backfill_reservation.promised_starts import MAX_CELLS, MAX_READ, PromisedStarts
from stromboli.plugins.backfill_reservation.reservation_search import ReservationSearch

if TYPE_CHECKING:
    from stromboli.engine.waiting.ordered_waits import Bools, WaitingColumns
    from stromboli.model.job import Job
    from stromboli.model.node_columns import Ints
    from stromboli.model.task import Task

log = logging.getLogger(__name__)
MAX_UNPROMISED = 64
"""Jobs without a promise that have a turn in a cycle in which nothing about them changed."""


class ConservativeBackfill(PromisedStarts):
    """As the plugin says, with `mode: conservative`."""

    def __init__(self, arguments: Any, switches: dict[str, bool]):
        super().__init__(arguments, switches)
        self._is_depth_told = False

    # -- promising

    def admitted_early(self, job: Job) -> bool:
        """As many jobs as are promised a start, and others that may start now."""
        promised = len(self._bookings) + len(self._early.entering)
        in_depth = promised < self.arguments.depth and self._is_start_known(job)
        return in_depth or self._may_start_now(job)

    def _has_reservations(self) -> bool:
        return bool(self._bookings) or super()._has_reservations()

    def no_room(self, job: Job, attempt: Attempt) -> None:
        self._book_nodes(job, attempt)
        booking = self._bookings.get(job)
        self._reserve_share(job, None if booking is None else max(booking.start, self._now))

    def _book_nodes(self, job: Job, attempt: Attempt) -> None:
        """Promise a start to a job that waits for room on nodes."""
        if not job.tasks:
            return
        booking = self._bookings.get(job)
        waits = booking is not None and booking.start > self._now
        if booking is not None and waits and (booking.usable is not None or not self._room_came):
            return
        if booking is None and self._is_spent():
            self._postponed[job] = None
            return
        self._postponed.pop(job, None)
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

    def _is_limited(self, job: Job) -> bool:
        self._searching = True  # what is promised to others is no limit of a queue
        try:
            return super()._is_limited(job)
        finally:
            self._searching = False

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
                return None if self._is_spent() else self._by_amounts(search, job, task)
            if not self._trials.searches_left:
                return kept
            return self._by_trials(search, job, attempt, inf if kept is None else kept.start) or kept
        finally:
            self._searching = False

    def _by_amounts(self, search: ReservationSearch, job: Job, task: Task) -> Booking | None:
        assert self._profile is not None
        needed, limit = self.session.rules.tasks_needed(job), self._limit(job)
        usable = search.usable_rows(task)
        slot = self._profile.earliest(task.shape, needed, limit, usable)
        return None if slot is None else self._booking(job, task.shape, needed, limit, usable, slot)

    def _by_trials(
        self, search: ReservationSearch, job: Job, attempt: Attempt, before: float
    ) -> Booking | None:
        assert self._profile is not None
        moments = self._profile.times[self._profile.times < before].tolist()
        wanted = (job, attempt, self._limit(job), moments)
        return self._trials.earliest(search, self.session, *wanted, self._bookings.values())

    def promised(self, job: Job) -> Promise | None:
        booking = self._bookings.get(job)
        if booking is None:
            return super().promised(job)
        if booking.promise is None:
            ending = ReservationSearch(self.session, self._ends).ending_before(booking.start, booking.rows)
            after = dict.fromkeys(task.job.key for task in ending if task.job)
            names = tuple(node.name for node in booking.nodes)
            booking.promise = Promise(booking.start, names, tuple(after), booking.start <= self._now)
        return booking.promise

    # -- who may start

    def held_back(self, job: Job) -> HeldBack | None:
        share = super().held_back(job)
        if share is not None or job.reserved:
            return share
        booking = self._bookings.get(job)
        if booking is None and self._is_spent():
            return HeldBack(*_HAS_ITS_TURN)
        waits = booking is not None and booking.start > self._now and booking.usable is not None
        return HeldBack(*_WOULD_DELAY) if waits else None

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
        """The jobs for which an earlier start is searched when they have their turn, as room came."""
        return [job for job, booking in self._bookings.items() if self._room_came and booking.usable is None]

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
        """The slots of jobs that had no turn as their queue had had its share, which it has no longer."""
        is_overused = cache(self.session.rules.overused)
        for slot in np.flatnonzero(~waiting.had_turn).tolist():
            job = waiting.jobs[slot]
            if job is not None and job.queue is not None and not is_overused(job.queue):
                yield slot

    def shape_key(self, task: Task) -> Any:
        if task.job is None or task.best_effort:
            return None
        if self._searching and not self.session.cluster.ledgers_of(task.shape):
            return True  # nothing that is promised is asked for
        booked, own = task.job.id if task.job in self._bookings else None, self._cleared.get(task)
        return self._searching, self._ends.limit(task), booked, None if own is None else own.row

    def node_filters(self, task: Task) -> Iterator[NodeFilter]:
        if task.job is None or task.best_effort:
            return
        if self.session.cluster.ledgers_of(task.shape):
            yield NodeFilter(self._beside_ledgers, self.name, "pods", lambda _: self._filter_version())
        if not self._searching:
            yield NodeFilter(self._beside_promises, self.name, "pods", lambda _: self._filter_version())

    def _filter_version(self) -> int:
        version = self._version + self._trials.version
        return -version if self._is_evicting() else version

    def _beside_ledgers(self, task: Task, nodes: Nodes) -> Iterator[Check]:
        """A task may not be where others were promised what it needs besides amounts, while they have it."""
        if self._is_evicting():
            return
        ledgers = self.session.cluster.ledgers_of(task.shape)
        window = self._trials.window if self._searching else (self._now, self._now + self._ends.limit(task))
        passes = nodes.all()
        for job, booking in self._bookings.items():
            if job is not task.job and booking.is_within(*window) and not booking.ledgers.isdisjoint(ledgers):
                passes[booking.rows] = False
        self._pass_own(task, passes)
        yield Check(passes, RESERVED)

    def _beside_promises(self, task: Task, nodes: Nodes) -> Iterator[Check]:
        """A task may stay as long as it may run without taking what is promised to others."""
        if self._profile is None or task.job is None or self._is_evicting():
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
        self._pass_own(task, passes)
        yield Check(passes, RESERVED)


_HAS_ITS_TURN = (
    "many earlier jobs have a reserved start",
    "many earlier jobs have a reserved start",
    "no action needed: it is considered in one of the next cycles",
)
_WOULD_DELAY = (
    "it would delay jobs that have a reserved start",
    "it would delay jobs that have a reserved start",
    "a shorter time limit lets it start earlier",
)
