"""Who could start by eviction need not wait at the gate for room that nobody will leave by himself (beyond Volcano)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from stromboli.engine.queue_limits import own_capability
from stromboli.engine.transaction import EvictionReason
from stromboli.model.amounts import Amounts, lacking, minus, shift
from stromboli.model.status import Status

if TYPE_CHECKING:
    from stromboli.engine.session import Session
    from stromboli.model.job import Job
    from stromboli.model.queue import Queue
    from stromboli.model.task import Task

PREEMPTING = {"preempt", "gangpreempt"}
RECLAIMING = {"reclaim", "gangreclaim"}


class Urgency:
    """Lets jobs through that only want of room holds back, if others could make that room."""

    def __init__(self, session: Session):
        self._session = session
        actions = set(session.policy.actions)
        self._preempts = bool(actions & PREEMPTING)
        self._reclaims = bool(actions & RECLAIMING)
        columns = session.cluster.columns
        self._idle = minus(session.total, columns.total(columns.used))
        self._promised: set[Task] = set()
        """Victims that others who were let through count on."""

    def lets_through(self, job: Job) -> bool:
        """Whether a job could start if others made room, and nothing but want of room speaks against it.

        The gate is asked in a trial in which these others have gone, so that limits of the queue are judged as they
        would be then.
        """
        queue, need = job.queue, job.min_resources
        if queue is None or need is None or not (self._preempts or self._reclaims):
            return False
        if any(need.get(dim, 0) > limit for dim, limit in own_capability(queue).items()):
            return False  # whoever goes, its queue may never take it
        missing = {dim: amount - self._idle.get(dim, 0) for dim, amount in need.items()}
        missing = {dim: amount for dim, amount in missing.items() if amount > 0}
        victims: list[Task] = []
        freed: Amounts = {}
        with self._session.statement() as look:
            for victim in self._could_go(job, queue):
                if not lacking(missing, freed, missing):
                    break
                if look.evict(victim, EvictionReason("enqueue", job.key)) is None:
                    shift(freed, victim.request)
                    victims.append(victim)
            welcome = not lacking(
                missing, freed, missing
            ) and self._session.rules.enqueueable_if_capacity_is_free(job)
        if not victims or not welcome:
            return False
        self._promised.update(victims)
        self._idle = minus(self._idle, minus(need, freed))
        return True

    def _could_go(self, job: Job, mine: Queue) -> Iterator[Task]:
        """Running tasks that the evicting actions of this policy could take for a job, the least urgent first."""
        others = [
            other for other in self._session.jobs() if other is not job and self._yields(other, job, mine)
        ]
        for other in sorted(others, key=lambda other: (other.priority, other.created, other.id)):
            for victim in sorted(other.by_status[Status.RUNNING], key=self._session.task_key, reverse=True):
                if victim.preemptable and victim not in self._promised:
                    yield victim

    def _yields(self, other: Job, job: Job, mine: Queue) -> bool:
        if other.queue is mine:
            return self._preempts and other.priority < job.priority
        return (
            self._reclaims
            and other.queue is not None
            and other.queue.reclaimable
            and self._session.rules.preemptive(mine, self._first(job))
        )

    def _first(self, job: Job) -> list[Task]:
        """As many of a job's tasks as it needs to start."""
        return [task for task in job.by_status[Status.PENDING] if not task.gates][: max(job.minimum, 1)]
