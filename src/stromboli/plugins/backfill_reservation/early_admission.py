"""Jobs that enter their queue while the capacity that they need is in use, so that `allocate` sees them in order."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from stromboli.api import names
from stromboli.engine.placement.node_fit import slots_of
from stromboli.model.amounts import Amounts, lacking, plus, shift, times, total_of
from stromboli.model.dimensions import PODS
from stromboli.model.status import Status

if TYPE_CHECKING:
    from stromboli.engine.session import Session
    from stromboli.model.cluster import Dirty
    from stromboli.model.job import Job
    from stromboli.model.node_columns import Ints
    from stromboli.model.queue import Queue


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
        self._others_first.add(queue)  # jobs are asked about in their order
        return False

    def may_search(self, job: Job) -> bool:
        """Whether this session has time to look for a start of one more job of a queue."""
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
        if self._total is None:
            self._total = _total(self._session.cluster.columns.future_idle)
        least = job.min_resources or {}
        return not lacking(plus(self._taken, least), self._total, least)

    def leaves_owed(self, job: Job, free: Ints) -> bool:
        """Whether a job leaves free what running jobs lack of their minimum."""
        least = job.min_resources or {}
        if not least:
            least = total_of(times(request, count) for request, count in pod_demand(job))
        return not lacking(total_of((self._taken, self._owed_total, least)), _total(free), least)

    def fits_now(self, job: Job, free: Ints) -> bool:
        """Whether a job could start in free capacity and within the limits of its queue, beside those before it."""
        least = job.min_resources or {}
        if lacking(plus(self._taken, least), _total(free), least):
            return False
        limits = self._session.rules.queue_limits(job.queue) if job.queue is not None else ()
        for limit in limits:
            if any(
                limit.held.get(dim, 0) + least[dim] > limit.most[dim] for dim in least if dim in limit.most
            ):
                return False
        return fits_nodes(job, free)


def fits_nodes(job: Job, free: Ints) -> bool:
    """Whether nodes have capacity for each kind of pod that a job needs to start, and at the gate for its minimum."""
    least = job.min_resources or {}
    if job.waits_for_queue and lacking(least, _total(free), least):
        return False
    return all(int(slots_of(request, free).sum()) >= count for request, count in pod_demand(job))


def _total(free: Ints) -> Amounts:
    """What is free on all nodes together; an overbooked node has nothing."""
    return dict(enumerate(np.maximum(free, 0).sum(axis=1).tolist()))


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
