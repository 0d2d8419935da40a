"""The walk over starving jobs, and how evicting actions commit what they found (spec 02 5, 6, 7)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from stromboli.engine.eviction.unneeded_victims import restore_unneeded_victims
from stromboli.engine.placement.node_placement import Place
from stromboli.engine.statement import Statement
from stromboli.model.status import Status

if TYPE_CHECKING:
    from stromboli.engine.eviction.eviction_options import EvictionOptions
    from stromboli.engine.session import Session
    from stromboli.model.job import Job
    from stromboli.model.task import Task

EVICTED = "evicted"
"""The key of the cluster's memory under which it is kept which jobs lost pods lately, and until when that counts."""

MakeRoom = Callable[[Statement, "Task"], bool]
"""Makes room for one task within a statement; whether the task got some."""


def starving_jobs(session: Session) -> list[Job]:
    """Jobs that were let in, may be scheduled and are short of what they need."""
    return [job for job in list(session.cluster.backlog) if _is_starving(session, job)]


def _is_starving(session: Session, job: Job) -> bool:
    with session.guard(job):
        return (
            not job.waits_for_queue
            and session.rules.job_valid(job) is None
            and session.rules.job_starving(job)
        )
    return False


def pending_ungated(session: Session, job: Job) -> list[Task]:
    """A job's pending tasks in order, save those that are held at a gate."""
    return sorted((task for task in job.by_status[Status.PENDING] if not task.gates), key=session.task_key)


def make_room_for_job(session: Session, job: Job, make_room: MakeRoom, options: EvictionOptions) -> None:
    """Make room for a job task by task while it starves; all of it stands only if the job can start with it."""
    if lost_pods_lately(session, job, options):
        return
    with session.guard(job), session.statement() as trial:
        for task in pending_ungated(session, job):
            if not session.rules.job_starving(job):
                break
            make_room(trial, task)
        if session.rules.job_pipelined(job):
            commit_evictions(session, trial, options)


def pipeline_without_eviction(session: Session, trial: Statement, task: Task) -> bool:
    """Pipeline a task to room that is free, or is being freed already."""
    queue = session.queue_of(task)
    if queue is None or not session.rules.allocatable(queue, task):
        return False
    place = session.place(task)
    return isinstance(place, Place) and trial.pipeline(task, place.node, evicted=not place.now) is None


def commit_evictions(session: Session, trial: Statement, options: EvictionOptions) -> None:
    """Commit a statement, less the evictions that are not needed, and reserve the room that was cleared.

    A job for which nobody has to go is left to allocate: pipelined again in every cycle, it would never be bound.
    """
    if options.fewest_victims:
        restore_unneeded_victims(session, trial, options.no_harm)
    evicted = trial.evicted()
    pipelined = [change.task for change in trial.changes() if change.status is Status.PIPELINED]
    # Once somebody is evicted, room that was free is reserved too: without it the eviction was in vain.
    cleared = [task for task in pipelined if evicted or session.is_nominated(task)]
    if cleared or not options.fewest_victims:
        for task in cleared:
            session.reserve(task, options.hold_seconds)
        _remember_losers(session, {victim.job for victim in evicted if victim.job is not None}, options)
        trial.commit()


def lost_pods_lately(session: Session, job: Job, options: EvictionOptions) -> bool:
    """Whether a job lost pods so lately that it may not evict: else it and its evictor could take turns forever."""
    until: float = session.cluster.memory.get(EVICTED, {}).get(job.key, 0.0)
    return options.hold_seconds > 0 and session.now < until


def _remember_losers(session: Session, jobs: set[Job], options: EvictionOptions) -> None:
    """Remember which jobs lost pods, for as long as the room that they left is reserved."""
    if options.hold_seconds > 0:
        memory = session.cluster.memory
        before = memory.get(EVICTED, {})
        current = {key: until for key, until in before.items() if until > session.now}
        memory[EVICTED] = current | {job.key: session.now + options.hold_seconds for job in jobs}
        session.record(lambda: memory.update({EVICTED: before}), committed=True)
