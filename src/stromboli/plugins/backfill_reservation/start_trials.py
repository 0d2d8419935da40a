"""When a job could start whose places more than amounts decide: the ordinary search is tried at some moments."""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING

import numpy as np

from stromboli.plugins.backfill_reservation.booking import Booking, kinds_of

if TYPE_CHECKING:
    from collections.abc import Collection

    from stromboli.engine.plugin import Attempt
    from stromboli.engine.session import Session
    from stromboli.model.job import Job
    from stromboli.plugins.backfill_reservation.reservation_search import ReservationSearch

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
