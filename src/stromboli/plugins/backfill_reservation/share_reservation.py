"""What the limits of a queue must leave for its first waiting job, from when the queue will have enough of them."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain
from math import inf
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from stromboli.model.amounts import Amounts, maximum, times, total_of
from stromboli.model.dimensions import PODS
from stromboli.model.queue import lineage
from stromboli.model.status import Status

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stromboli.engine.session import Session
    from stromboli.model.job import Job
    from stromboli.model.queue import Queue
    from stromboli.plugins.backfill_reservation.expected_ends import ExpectedEnds


class SpareShare(NamedTuple):
    """What one limit leaves to jobs that still run when the reserved job is to start."""

    queue: Queue
    """The limit counts what jobs of this queue, and of those below it, hold."""
    amounts: Amounts
    """Of the resources that the limit names; less with every task that stays beyond the start."""


@dataclass(slots=True, eq=False)
class ShareReservation:
    """A job that waits for the limits of its queue, and what these leave to others."""

    job: Job
    start: float
    """When the limits allow it at the latest, in seconds since 1970."""
    spare: list[SpareShare]
    after: tuple[str, ...]
    """The jobs that are expected to end before, by their keys."""
    is_lacking: bool = True
    """Whether the limits do not allow it now."""
    is_guess: bool = False
    """Whether pods without a time limit have to end before."""

    def leaves(self, request: Mapping[int, float], queues: list[Queue]) -> bool:
        """Whether a job of a queue, given with those above it, may hold so much beyond the start."""
        return all(
            amount <= left.amounts.get(dim, inf)
            for left in self.spare
            if left.queue in queues
            for dim, amount in request.items()
            if amount > 0
        )

    def take(self, request: Mapping[int, float], queues: list[Queue], sign: int) -> None:
        """A task that stays beyond the start was placed, or (-1) its placement was undone."""
        for left in self.spare:
            if left.queue in queues:
                for dim in left.amounts.keys() & request.keys():
                    left.amounts[dim] -= sign * request[dim]


def share_reservation(
    session: Session, ends: ExpectedEnds, job: Job, start: float, guesses: bool = False
) -> ShareReservation | None:
    """When the limits of a job's queue will allow it, but not before a start; None if it is not known when."""
    if job.queue is None:
        return None
    need, limits = request_to_start(session, job), session.rules.queue_limits(job.queue)
    if job.waits_for_queue:
        need = maximum(need, job.min_resources or {})
    members = {limit.queue: _members(session, limit.queue, job.queue) for limit in limits}
    freed = {queue: ends.freed_by_queues(below, guesses) for queue, below in members.items()}
    shares, is_lacking = [], False
    for limit in limits:
        left = {
            dim: limit.most[dim] - limit.held.get(dim, 0) - amount
            for dim, amount in need.items()
            if dim != PODS and dim in limit.most
        }
        shares.append(SpareShare(limit.queue, left))
        moments, sums = freed[limit.queue]
        lacking = [sums[:, dim] >= -amount for dim, amount in left.items() if amount < 0]
        if lacking:
            is_lacking = True
            enough = np.logical_and.reduce(lacking)
            if not enough.any():
                return None
            start = max(start, float(moments[enough.argmax()]))
    for share in shares:
        moments, sums = freed[share.queue]
        ended = int(moments.searchsorted(start, side="right"))
        for dim in share.amounts if ended else ():
            share.amounts[dim] += int(sums[ended - 1, dim])
    after = ends.jobs_ending_by(start, dict.fromkeys(chain.from_iterable(members.values())))
    return ShareReservation(job, start, shares, tuple(after), is_lacking, guesses)


def _members(session: Session, above: Queue, own: Queue) -> list[Queue]:
    """The queues whose jobs count against a limit of a queue or of one above it."""
    if above is own:
        return [own]
    queues = session.cluster.queues
    return [queue for queue in queues.values() if above in lineage(queue, queues)]


def request_to_start(session: Session, job: Job) -> Amounts:
    """What the tasks request that a job needs to start."""
    pending, needed = job.by_status[Status.PENDING], session.rules.tasks_needed(job)
    if not pending:
        return dict(job.min_resources or {})
    if needed >= len(pending):
        return dict(job.pending)
    first = next(iter(pending))
    if all(task.shape is first.shape for task in pending):
        return times(first.request, needed)
    return total_of(task.request for task in sorted(pending, key=session.task_key)[:needed])
