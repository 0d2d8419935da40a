"""Allocate nodes to tasks, gangs all or nothing (spec 02 3).

A job first gets exactly enough to be ready; every further task is another turn of its queue, so that elastic jobs share
what is left. A gang that could start once pipelined tasks have their resources keeps what it was given until the
session ends.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from stromboli.api import names
from stromboli.engine.catalog import action
from stromboli.engine.pending_tasks import PendingTasks, pending_tasks
from stromboli.engine.placement.node_placement import Place
from stromboli.engine.session import Session
from stromboli.engine.statement import Statement
from stromboli.engine.topology.gradient_search import GradientSearch
from stromboli.engine.topology.task_places import place_nominated, place_tasks
from stromboli.engine.waiting.capacity_waits import Turns
from stromboli.engine.waiting.ordered_waits import lacks_pods
from stromboli.model.job import Job, SubJob
from stromboli.model.status import Status
from stromboli.model.task import Task
from stromboli.policy.arguments import error_cache


@dataclass(frozen=True, slots=True)
class Arguments:
    """Arguments of the allocate action."""

    predicate_error_cache: bool = error_cache()


@action("allocate", Arguments, for_waiting=True)
def allocate(session: Session) -> None:
    """Place pending tasks by queue and job, gangs all or nothing."""
    if "enqueue" not in session.policy.actions:
        for job in list(session.cluster.waiting):
            session.set_phase(job, names.GROUP_INQUEUE)
    search, reserving = GradientSearch(session), GradientSearch(session, "reserve")
    turns = session.waits.turns(session, _pending_tasks)
    for job in turns:
        with session.guard(job):
            _take_turn(session, turns, job, search, reserving)


def _take_turn(
    session: Session, turns: Turns, job: Job, search: GradientSearch, reserving: GradientSearch
) -> None:
    """Place a job, with another turn for tasks beyond its minimum; plugins learn of it if it finds no capacity."""
    pending = turns.pending(job)
    if pending is None:
        if lacks_pods(job):
            session.rules.no_room(job, lambda: False)
        return
    may_start = turns.may_start(job) and not _is_held_back(session, job)
    if may_start and _allocate_job(session, search, job, pending):
        if pending:
            turns.push(job, pending)
        if job.allocated_count:
            return
    if may_start and _found_no_capacity(session, job):
        _allocate_where_reserved(session, job)
    if _found_no_capacity(session, job):
        session.rules.no_room(job, partial(_attempt, session, reserving, job))


def _pending_tasks(session: Session, job: Job) -> PendingTasks | None:
    """The tasks to place of a job, if it may be scheduled at all."""
    with session.guard(job):
        if job.waits_for_queue:
            return None
        if session.requirements.unmet(job):
            return None
        if invalid := session.rules.job_valid(job):
            session.leave_out(job, invalid)
            return None
        return pending_tasks(session, job)
    return None


def _is_held_back(session: Session, job: Job) -> bool:
    """Whether a plugin lets others start before a job; its user reads why."""
    held_back = session.rules.held_back(job)
    if held_back is None:
        return False
    session.reports.held_back[job] = held_back
    return True


def _allocate_where_reserved(session: Session, job: Job) -> None:
    """Place a job on the nodes that are reserved for it, if they serve: all of its tasks that have a place, or none."""
    places, queue = session.rules.reserved_places(job), job.queue
    if not places or queue is None:
        return
    with session.statement() as trial:
        for task, node in places.items():
            # since the places were found its pod may have changed or gone, and its queue may have taken more
            may_start = task in job.by_status[Status.PENDING] and session.rules.allocatable(queue, task)
            place = session.place(task, session.only(node)) if may_start else None
            if not isinstance(place, Place) or not place.now or trial.assign(task, place) is not None:
                return
        if session.rules.job_ready(job):
            trial.commit()


def _found_no_capacity(session: Session, job: Job) -> bool:
    """Whether a job that had its turn has not started, nor is any of its tasks pipelined."""
    if job.counts[Status.PIPELINED] or job.counts[Status.ALLOCATED]:
        return False
    return job.allocated_count == 0 or not session.rules.job_ready(job)


def _attempt(session: Session, search: GradientSearch, job: Job) -> bool:
    """Place a job within the statement of a plugin; whether it could start."""
    with session.statement() as trial:
        could_start = _placed(session, search, trial, job, pending_tasks(session, job)) and bool(len(trial))
        trial.keep()
    return could_start


def _allocate_job(session: Session, search: GradientSearch, job: Job, pending: PendingTasks) -> bool:
    """One turn of a job; whether it is ready, so that what is left may have another turn."""
    with session.statement() as trial:
        if _placed(session, search, trial, job, pending):
            if session.rules.job_ready(job):
                trial.commit()
                return True
            trial.keep()
    return False


def _placed(
    session: Session, search: GradientSearch, trial: Statement, job: Job, pending: PendingTasks
) -> bool:
    """Place a job; whether it could start with what it got."""
    if job.policies or session.topology.tier_limit(job) is not None:
        return search.place(job, pending)
    return all(_place_all(session, trial, sub_job, tasks) for sub_job, tasks in pending.items())


def _place_all(session: Session, trial: Statement, sub_job: SubJob, tasks: list[Task]) -> bool:
    """A job without sub-groups: its one sub-job is the job."""
    top = session.cluster.hyper_nodes.top
    if sub_job.nominated_hyper_node and place_nominated(session, sub_job, tasks, top):
        return True
    return place_tasks(session, trial, sub_job, tasks, top)
