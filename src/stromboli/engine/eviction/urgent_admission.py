"""Admit a job to its queue on a full cluster if evictions could free what it needs (beyond Volcano)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cached_property
from heapq import merge
from itertools import takewhile
from typing import TYPE_CHECKING

from stromboli.engine.eviction.eviction_options import EvictionOptions
from stromboli.engine.queue_limits import own_capability
from stromboli.engine.transaction import EvictionReason
from stromboli.model.amounts import Amounts, excess, lacking, minus, shift
from stromboli.model.status import Status

if TYPE_CHECKING:
    from stromboli.engine.catalog import Action
    from stromboli.engine.session import Session
    from stromboli.model.job import Job, JobId
    from stromboli.model.queue import Queue
    from stromboli.model.task import Task


def _urgency(job: Job) -> tuple[int, float, JobId]:
    return (job.priority, job.created, job.id)


class UnclaimedVictims:
    """Running tasks that may be evicted, except those on which jobs that were admitted before count already.

    Each queue's jobs are sorted once, the least urgent first, and those without victims leave: a job that asks looks at
    no more jobs than it finds victims in.
    """

    def __init__(self, session: Session) -> None:
        self._session = session
        self._sorted: dict[Job, list[Task]] = {}

    @cached_property
    def queues(self) -> dict[Queue, dict[Job, None]]:
        """The queues with jobs that run, and these jobs."""
        running: dict[Queue, list[Job]] = {}
        for job in self._session.jobs():
            if job.queue is not None and job.by_status[Status.RUNNING]:
                running.setdefault(job.queue, []).append(job)
        return {queue: dict.fromkeys(sorted(jobs, key=_urgency)) for queue, jobs in running.items()}

    def jobs_of(self, queue: Queue) -> Iterable[Job]:
        """The jobs of a queue that have victims left, the least urgent first."""
        return self.queues.get(queue, ())

    def of(self, job: Job) -> list[Task]:
        """The victims of a job that are left, in the order in which they would go."""
        victims = self._sorted.get(job)
        if victims is None:
            running = (task for task in job.by_status[Status.RUNNING] if task.preemptable)
            victims = self._sorted[job] = sorted(running, key=self._session.task_key, reverse=True)
        return victims

    def claim(self, victims: list[Task]) -> None:
        """Leave these to the job that was admitted."""
        claimed = set(victims)
        for job in dict.fromkeys(task.job for task in victims if task.job is not None):
            left = self._sorted[job] = [task for task in self._sorted[job] if task not in claimed]
            if not left and job.queue is not None:
                del self.queues[job.queue][job]


class UrgentAdmission:
    """Admits jobs that only a lack of capacity keeps out of their queue, if victims could free it or it is free."""

    def __init__(self, session: Session, counts_on_evictions: bool = True):
        """Without counting on evictions: only jobs of queues below their share that fit into free capacity."""
        self._counts_on_evictions = counts_on_evictions
        self._session = session
        self._idle = session.cluster.columns.free
        self._victims = UnclaimedVictims(session)

    def admit(self, job: Job) -> bool:
        """Admit a job that could start after evictions, if only a lack of capacity keeps it out.

        That includes a job of a queue below its share that fits into free capacity which is reserved for others.

        Plugins are asked in a trial in which the victims are evicted, so that limits of the queue are judged as they
        would be then.
        """
        queue, need = job.queue, self._session.needs.least(job)
        if queue is None or need is None:
            return False
        missing = excess(need, self._idle)
        evicts = self._counts_on_evictions and (self._preempts_for(job) or self._reclaims_for(job))
        if not evicts and (missing or not self._session.rules.has("may_reclaim_for")):
            return False
        if any(need.get(dim, 0) > limit for dim, limit in own_capability(queue).items()):
            return False  # no eviction could help: its queue may never have as much
        victims: list[Task] = []
        freed: Amounts = {}
        with self._session.statement() as trial:
            for victim in self._possible_victims(job, queue) if evicts else ():
                if not lacking(missing, freed, missing):
                    break
                gained = self._freed_by(victim)
                if trial.evict(victim, EvictionReason("enqueue", job.key)) is None:
                    shift(freed, gained)
                    victims.append(victim)
            enough = not lacking(missing, freed, missing)
            enqueueable = enough and self._session.rules.enqueueable_if_capacity_is_free(job)
        if not enqueueable or not (
            victims or self._is_below_share(job) or (evicts and self._may_reclaim(job))
        ):
            return False
        self._victims.claim(victims)
        self._idle = minus(self._idle, minus(need, freed))
        return True

    def _freed_by(self, victim: Task) -> Amounts:
        """Return what a node gains by the end of a task: nothing as long as others hold more than the node has."""
        columns, node = self._session.cluster.columns, victim.node
        if node is None or node.row < 0:
            return {}
        free = columns.idle[:, node.row] + columns.releasing[:, node.row]
        return {dim: max(min(amount, int(free[dim]) + amount), 0) for dim, amount in victim.request.items()}

    def _possible_victims(self, job: Job, queue: Queue) -> Iterator[Task]:
        """Running tasks that the evicting actions of this policy could evict for a job, the least urgent first.

        Pods that `protectFor` or `respectPriority` protects count too: they end some time. A job that waits for that
        outside has no pods, so its queue has no demand, and other queues take whatever becomes free.
        """
        sources = [self._preemptable_jobs(job, queue), *self._reclaimable_jobs(job, queue)]
        for other in merge(*sources, key=_urgency):
            yield from self._victims.of(other)

    def _preemptable_jobs(self, job: Job, queue: Queue) -> Iterable[Job]:
        jobs = self._victims.jobs_of(queue) if self._preempts_for(job) else ()
        return takewhile(lambda other: other.priority < job.priority, jobs)

    def _reclaimable_jobs(self, job: Job, queue: Queue) -> list[Iterable[Job]]:
        if not self._may_reclaim(job):
            return []
        others = self._victims.queues
        return [self._victims.jobs_of(other) for other in others if other is not queue and other.reclaimable]

    def _may_reclaim(self, job: Job) -> bool:
        """Whether the policy reclaims and the queue of a job is below its share, even beside this job."""
        return self._reclaims_for(job) and self._session.rules.may_reclaim_for(job)

    def _is_below_share(self, job: Job) -> bool:
        """Whether the policy divides the cluster and the queue of a job is below its share, even beside this job."""
        return self._session.rules.has("may_reclaim_for") and self._session.rules.may_reclaim_for(job)

    def _preempts_for(self, job: Job) -> bool:
        """Whether an action of the policy could preempt for a job."""
        return any(action.preempts and self._serves(action, job) for action in self._session.actions)

    def _reclaims_for(self, job: Job) -> bool:
        return any(action.reclaims and self._serves(action, job) for action in self._session.actions)

    def _serves(self, action: Action, job: Job) -> bool:
        """Whether an evicting action serves jobs of this kind."""
        options = self._session.arguments(action.name)
        return not isinstance(options, EvictionOptions) or options.serves(job)
