"""Let an urgent gang take the places of lesser gangs in its queue, as a whole (spec 02 7)."""

from __future__ import annotations

from stromboli.engine.catalog import action
from stromboli.engine.eviction.gang_eviction import Arguments, Raid, raid
from stromboli.engine.eviction.victim_bundles import Bundle, by_job
from stromboli.engine.session import Session
from stromboli.model.amounts import Amounts
from stromboli.model.job import Job
from stromboli.model.queue import Queue
from stromboli.model.status import Status


@action("gangpreempt", Arguments)
def gangpreempt(session: Session) -> None:
    """For each starving gang: evict lesser jobs of its queue, their surplus first, until all of it has a place."""
    raid(
        session,
        Raid(
            action="gangpreempt",
            kind="preempt",
            statuses=(Status.BOUND, Status.RUNNING),
            from_job=_lesser,
            order=_order,
            may_begin=lambda session, queue, tasks: True,
        ),
    )


def _lesser(job: Job, other: Job) -> bool:
    return other.queue is job.queue and other.priority < job.priority


def _order(session: Session, bundles: list[Bundle], queue: Queue, need: Amounts) -> list[Bundle]:
    return by_job(session, bundles)
