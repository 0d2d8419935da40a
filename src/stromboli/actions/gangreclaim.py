"""Let a starving queue take back its share for a gang as a whole (spec 02 7)."""

from __future__ import annotations

from functools import partial

from stromboli.engine.catalog import action
from stromboli.engine.eviction.eviction_commit import took_lately
from stromboli.engine.eviction.gang_eviction import GangEviction, GangEvictionOptions, evict_for_gangs
from stromboli.engine.eviction.victim_bundles import order_by_queue
from stromboli.engine.session import Session
from stromboli.model.job import Job
from stromboli.model.status import Status


@action("gangreclaim", GangEvictionOptions)
def gangreclaim(session: Session) -> None:
    """For each starving gang: evict what other queues hold, their surplus first, until all of it has a place."""
    evict_for_gangs(
        session,
        GangEviction(
            action="gangreclaim",
            kind="reclaim",
            statuses=(Status.RUNNING,),
            may_take_from=partial(_may_take_from, session),
            order_bundles=partial(order_by_queue, session),
            may_start=session.rules.preemptive,
            skip_queue=session.rules.overused,
        ),
    )


def _may_take_from(session: Session, job: Job, other: Job) -> bool:
    if other.queue is None or other.queue is job.queue or not other.queue.reclaimable:
        return False
    return not took_lately(session, other, job, session.arguments("gangreclaim"))
