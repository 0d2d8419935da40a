"""The walk over starving jobs, for which evicting actions make room (spec 02 5, 6, 7)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from stromboli.engine.eviction.eviction_commit import commit_evictions, lost_pods_lately
from stromboli.engine.placement.node_placement import Place
from stromboli.engine.statement import Statement
from stromboli.model.status import Status

if TYPE_CHECKING:
    from stromboli.engine.eviction.eviction_options import EvictionOptions
    from stromboli.engine.session import Session
    from stromboli.model.job import Job
    from stromboli.model.task import Task

MakeRoom = Callable[[Statement, "Task"], bool]
"""Makes room for one task within a statement; whether the task got some."""


def starving_jobs(session: Session) -> list[Job]:
    """Jobs that were let in, may be scheduled and are short of what they need."""
    return [job for job in list(session.cluster.backlog) if _is_starving(session, job)]


def _is_starving(session: Session, job: Job) -> bool:
    with session.guard(job):
        return (
            not job.waits_for_queue
            and job not in session.left_out
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
