"""Let an urgent gang take the places of lesser gangs in its queue, as a whole (spec 02 7)."""

from __future__ import annotations

from stromboli.engine.catalog import action
from stromboli.engine.eviction.gang_eviction import GangEvictionOptions, evict_for_gangs
from stromboli.engine.eviction.victim_candidates import VictimCandidates
from stromboli.engine.session import Session
from stromboli.model.job import Job
from stromboli.model.status import Status
from stromboli.model.task import Task


@action("gangpreempt", GangEvictionOptions)
def gangpreempt(session: Session) -> None:
    """For each starving gang: evict lesser jobs of its queue, their surplus first, until all of it has a place."""
    options: GangEvictionOptions = session.arguments("gangpreempt")
    candidates = VictimCandidates(
        "unified_evictable",
        (Status.BOUND, Status.RUNNING),
        _has_lower_priority,
        accepts=options.may_evict(session),
        key=lambda task: task.job.priority if task.job else None,
        scope=session.queue_of,
    )
    evict_for_gangs(session, "gangpreempt", candidates, reclaims=False)


def _has_lower_priority(task: Task, job: Job) -> bool:
    return task.job is not None and job.queue is task.job.queue and job.priority < task.job.priority
