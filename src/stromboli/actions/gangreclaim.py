"""Let a starving queue take back its share for a gang as a whole (spec 02 7)."""

from __future__ import annotations

from collections.abc import Hashable

from stromboli.engine.catalog import action
from stromboli.engine.eviction.eviction_commit import may_reclaim_from, queues_that_took
from stromboli.engine.eviction.gang_eviction import GangEvictionOptions, evict_for_gangs
from stromboli.engine.eviction.victim_candidates import VictimCandidates
from stromboli.engine.session import Session
from stromboli.model.job import Job
from stromboli.model.status import Status
from stromboli.model.task import Task


@action("gangreclaim", GangEvictionOptions, evicts_by="unified_evictable", reclaims=True, for_waiting=True)
def gangreclaim(session: Session) -> None:
    """Evict jobs of other queues, their surplus first, until a whole starving gang fits."""
    options: GangEvictionOptions = session.arguments("gangreclaim")

    def may_take_from(task: Task, job: Job) -> bool:
        return job.gang_evictable and may_reclaim_from(session, task, job, options)

    def key(task: Task) -> Hashable:
        return (task.job.priority, queues_that_took(session, task.job)) if task.job is not None else None

    candidates = VictimCandidates(
        "unified_evictable", (Status.RUNNING,), may_take_from, accepts=options.may_evict(session), key=key
    )
    evict_for_gangs(session, options, candidates, reclaims=True)
