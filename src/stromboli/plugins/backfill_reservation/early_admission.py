"""Jobs and the limits of their queue: early admission, and the share that is kept for the first pending job.

A job is admitted while the capacity that it needs is still in use, so that `allocate` sees jobs in order. Of the limits
of a queue, enough is kept for its first pending job from the moment on when the queue will have enough.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain
from math import inf
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from stromboli.api import names
from stromboli.engine.placement.node_fit import slots_of
from stromboli.model.amounts import Amounts, lacking, maximum, plus, shift, times, total_of
from stromboli.model.dimensions import PODS
from stromboli.model.queue import lineage
from stromboli.model.status import Status

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stromboli.engine.session import Session
    from stromboli.model.cluster import Dirty
    from stromboli.model.job import Job
    from stromboli.model.node_columns import Columns, Ints
    from stromboli.model.queue import Queue
    from stromboli.plugins.backfill_reservation.expected_ends import ExpectedEnds


MAX_SEARCHES = 8
"""Jobs of a queue for which a session looks for a start before they are admitted."""


class EarlyAdmission:
    """The first waiting job of each queue, and the capacity that jobs admitted since the last placement will take."""

    def __init__(self) -> None:
        self._first: dict[Queue, Job] = {}
        """The first job of each queue that was admitted and has not started."""
        self.entering: dict[Job, None] = {}
        """Jobs admitted in this session, and earlier ones whose pods do not exist yet."""
        self._owed: dict[Job, Amounts] = {}
        """What running jobs lack that the gate keeps for them."""
        self._owed_total: Amounts = {}

    def opening(self, session: Session, dirty: Dirty) -> None:
        """Forget jobs that have started, left or got their pods."""
        self._session = session
        self._count_owed(session, dirty)
        self._first = {queue: job for queue, job in self._first.items() if _waits(session, job)}
        self.entering = {job: None for job in self.entering if not job.tasks and _waits(session, job)}
        self._searches: dict[Queue | None, int] = {}
        self._others_first: set[Queue] = set()
        self._total: Amounts | None = None
        self._taken: Amounts = {}
        for job in self.entering:
            shift(self._taken, job.min_resources or {})

    def _count_owed(self, session: Session, dirty: Dirty) -> None:
        everything = dirty.everything or dirty.nodes
        if dirty.everything:
            self._owed, self._owed_total = {}, {}
        for job in dict.fromkeys((*session.jobs(), *self._owed)) if everything else dirty.jobs:
            owed = session.needs.reserved(job) if job.visible and job.has_started else {}
            shift(self._owed_total, self._owed.pop(job, {}), -1)
            if owed:
                self._owed[job] = owed
                shift(self._owed_total, owed)

    def is_first(self, job: Job) -> bool:
        """Whether no admitted job of its queue waits before a job."""
        queue = job.queue
        if queue is None or queue in self._others_first:
            return False
        first, key = self._first.get(queue), self._session.job_key
        if first is None or not first.visible or key(job) < key(first):
            return True
        self._others_first.add(queue)  # jobs come in their order
        return False

    def may_search(self, job: Job) -> bool:
        """Whether this session has time to search a start for one more job of a queue."""
        self._searches[job.queue] = self._searches.get(job.queue, 0) + 1
        return self._searches[job.queue] <= MAX_SEARCHES

    def note(self, job: Job) -> None:
        """A job was admitted."""
        queue = job.queue
        if queue is None:
            return
        if self.is_first(job):
            self._first[queue] = job
        self.entering[job] = None
        shift(self._taken, job.min_resources or {})

    def pass_over(self, job: Job) -> None:
        """A job could never start: the next job of its queue is the first."""
        if job.queue is not None and self._first.get(job.queue) is job:
            del self._first[job.queue]

    def may_fit(self, job: Job) -> bool:
        """Whether all nodes together have what a job needs, beside what jobs before it take."""
        columns = self._session.cluster.columns
        if self._total is None:
            self._total = _total(columns, columns.future_idle)
        least = job.min_resources or {}
        return not lacking(plus(self._taken, least), self._total, least)

    def leaves_owed(self, job: Job, free: Ints) -> bool:
        """Whether a job leaves free what running jobs lack of their minimum."""
        least = job.min_resources or {}
        if not least:
            least = total_of(times(request, count) for request, count in pod_demand(job))
        total = _total(self._session.cluster.columns, free)
        return not lacking(total_of((self._taken, self._owed_total, least)), total, least)

    def fits_now(self, job: Job, free: Ints) -> bool:
        """Whether a job could start in free capacity and within the limits of its queue, beside those before it."""
        least = job.min_resources or {}
        columns = self._session.cluster.columns
        if lacking(plus(self._taken, least), _total(columns, free), least):
            return False
        limits = self._session.rules.queue_limits(job.queue) if job.queue is not None else ()
        for limit in limits:
            if any(
                limit.held.get(dim, 0) + least[dim] > limit.most[dim] for dim in least if dim in limit.most
            ):
                return False
        return fits_nodes(columns, job, free)


def fits_nodes(columns: Columns, job: Job, free: Ints) -> bool:
    """Whether nodes have capacity for each kind of pod that a job needs to start, and at the gate for its minimum."""
    least = job.min_resources or {}
    if job.waits_for_queue and lacking(least, _total(columns, free), least):
        return False
    return all(int(slots_of(request, free).sum()) >= count for request, count in pod_demand(job))


def _total(columns: Columns, free: Ints) -> Amounts:
    """What is free on all nodes together; an overbooked node has nothing."""
    return columns.total(np.maximum(free, 0))


def pod_demand(job: Job) -> list[tuple[Amounts, int]]:
    """What the pods of a job request, and how many of each kind there are.

    Pods that do not exist yet are taken to share the minimum resources of their job evenly.
    """
    pending = job.by_status[Status.PENDING]
    if not pending:
        count = max(job.minimum, 1)
        return [({**times(job.min_resources or {}, 1 / count), PODS: 1}, count)]
    kinds: dict[int, tuple[Amounts, int]] = {}
    for task in list(pending)[: max(job.minimum, 1)]:
        request, count = kinds.get(id(task.shape), (task.request, 0))
        kinds[id(task.shape)] = request, count + 1
    return list(kinds.values())


def _waits(session: Session, job: Job) -> bool:
    return job.phase == names.GROUP_INQUEUE and session.cluster.jobs.get(job.id) is job


# -- the share that is kept for the first pending job of a queue


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
