"""Let an urgent gang take the places of lesser gangs in its queue, as a whole (spec 02 7)."""

from __future__ import annotations

from stromboli.engine.catalog import action
from stromboli.engine.eviction.gang_eviction import GangEviction, GangEvictionOptions, evict_for_gangs
from stromboli.engine.eviction.victim_bundles import order_by_job
from stromboli.engine.session import Session
from stromboli.model.job import Job
from stromboli.model.status import Status


@action("gangpreempt", GangEvictionOptions)
def gangpreempt(session: Session) -> None:
    """For each starving gang: evict lesser jobs of its queue, their surplus first, until all of it has a place."""
    evict_for_gangs(
        session,
        GangEviction(
            action="gangpreempt",
            kind="preempt",
            statuses=(Status.BOUND, Status.RUNNING),
            may_take_from=_has_lower_priority,
            order_bundles=lambda bundles, queue, need: order_by_job(session, bundles),
        ),
    )


def _has_lower_priority(job: Job, other: Job) -> bool:
    return other.queue is job.queue and other.priority < job.priority
