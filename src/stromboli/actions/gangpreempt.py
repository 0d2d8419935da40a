"""Let an urgent gang take the places of lesser gangs in its queue, as a whole (spec 02 7)."""

from __future__ import annotations

from stromboli.engine.catalog import action
from stromboli.engine.eviction.gang_eviction import GangEvictionOptions, evict_for_gangs
from stromboli.engine.eviction.victim_candidates import VictimCandidates
from stromboli.engine.session import Session
from stromboli.model.job import Job
from stromboli.model.status import Status
from stromboli.model.task import Task


@action("gangpreempt", GangEvictionOptions, evicts_by="unified_evictable", preempts=True, for_waiting=True)
def gangpreempt(session: Session) -> None:
    """Evict lower-priority jobs of the same queue, their surplus first, until a whole starving gang fits."""
    options: GangEvictionOptions = session.arguments("gangpreempt")
    candidates = VictimCandidates(
        "unified_evictable",
        (Status.BOUND, Status.RUNNING),
        _may_take_from,
        accepts=options.may_evict(session),
        key=lambda task: task.job.priority if task.job else None,
        scope=session.queue_of,
    )
    evict_for_gangs(session, options, candidates, reclaims=False)


def _may_take_from(task: Task, job: Job) -> bool:
    """Whether a job of the same queue has a lower priority, and its gang may be evicted."""
    if task.job is None or job.queue is not task.job.queue or not job.gang_evictable:
        return False
    return job.priority < task.job.priority
