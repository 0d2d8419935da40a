"""Who could start by eviction need not wait at the gate for room that nobody will leave by himself (beyond Volcano)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stromboli.model.amounts import Amounts, lacking, minus, plus, shift
from stromboli.model.status import Status

if TYPE_CHECKING:
    from stromboli.engine.session import Session
    from stromboli.model.job import Job
    from stromboli.model.queue import Queue

PREEMPTING = {"preempt", "gangpreempt"}
RECLAIMING = {"reclaim", "gangreclaim"}


class Urgency:
    """What could be taken from others in this cycle, less what was promised to whoever was let through already."""

    def __init__(self, session: Session):
        self._session = session
        actions = set(session.policy.actions)
        self._preempts = bool(actions & PREEMPTING)
        self._reclaims = bool(actions & RECLAIMING)
        columns = session.cluster.columns
        self._idle = minus(session.total, columns.total(columns.used))
        self._promised: Amounts = {}
        self._held: dict[Queue, dict[int, Amounts]] = {}
        """By queue and job priority, what runs there."""
        if self._preempts or self._reclaims:
            for job in session.jobs():
                if job.queue is not None and job.allocated:
                    levels = self._held.setdefault(job.queue, {})
                    shift(levels.setdefault(job.priority, {}), job.allocated)

    def lets_through(self, job: Job) -> bool:
        """Whether a job could start if lesser jobs of its queue, or what other queues owe it, made room."""
        if job.min_resources is None or job.queue is None:
            return False
        room = plus(self._idle, self._yielding(job, job.queue))
        wanted = plus(job.min_resources, self._promised)
        if lacking(wanted, room, job.min_resources):
            return False
        shift(self._promised, job.min_resources)
        return True

    def _yielding(self, job: Job, mine: Queue) -> Amounts:
        room: Amounts = {}
        if self._preempts:
            for priority, held in self._held.get(mine, {}).items():
                if priority < job.priority:
                    shift(room, held)
        if self._reclaims and self._may_reclaim(job, mine):
            for queue, levels in self._held.items():
                if queue is not mine and queue.reclaimable:
                    for held in levels.values():
                        shift(room, held)
        return room

    def _may_reclaim(self, job: Job, mine: Queue) -> bool:
        tasks = [task for task in job.by_status[Status.PENDING] if not task.gates][: max(job.minimum, 1)]
        return bool(tasks) and self._session.rules.preemptive(mine, tasks)
