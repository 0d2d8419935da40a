"""Give room to tasks, gangs all or nothing (spec 02 3).

A job first gets exactly enough to be ready; every further task is another turn of its queue, so that elastic jobs
share what is left. A gang that could start once promised room is free keeps what it was given until the session ends.
"""

from __future__ import annotations

from dataclasses import dataclass

from stromboli.api import names
from stromboli.engine.catalog import action
from stromboli.engine.pending_tasks import PendingTasks, pending_tasks, worth_going_on
from stromboli.engine.placement.node_placement import Place
from stromboli.engine.placement.verdict import Verdict, verdict_text
from stromboli.engine.session import Session
from stromboli.engine.statement import Statement
from stromboli.model.job import Job, SubJob
from stromboli.model.task import Task
from stromboli.policy.ignored_arguments import error_cache


@dataclass(frozen=True, slots=True)
class Arguments:
    """Arguments of the allocate action."""

    predicate_error_cache: bool = error_cache()


@action("allocate", Arguments)
def allocate(session: Session) -> None:
    """Place pending tasks: queue by queue, job by job, gangs all or nothing."""
    if "enqueue" not in session.policy.actions:
        for job in list(session.cluster.waiting):
            session.set_phase(job, names.GROUP_INQUEUE)
    by_job = {job: tasks for job in list(session.cluster.backlog) if (tasks := _pending_tasks(session, job))}
    jobs_by_queue = session.jobs_by_queue(by_job)
    for _, job in jobs_by_queue.turns(skip=session.rules.overused):
        with session.guard(job):
            if _allocate_job(session, job, by_job[job]) and by_job[job]:
                jobs_by_queue.push(job)


def _pending_tasks(session: Session, job: Job) -> PendingTasks | None:
    """The tasks to place of a job, if it may be scheduled at all."""
    with session.guard(job):
        if job.waits_for_queue:
            return None
        if session.unmet(job):
            return None
        if invalid := session.rules.job_valid(job):
            session.leave_out(job, invalid.message, invalid.way_out, invalid.summary)
            return None
        return pending_tasks(session, job)
    return None


def _allocate_job(session: Session, job: Job, pending: PendingTasks) -> bool:
    """One turn of a job; whether it is ready, so that what is left may have another turn."""
    with session.statement() as trial:
        place = _place_sub_groups if job.policies else _place_all
        placed = place(session, trial, job, pending)
        if placed and session.rules.job_ready(job):
            trial.commit()
            return True
        if placed:
            trial.keep()
    return False


def _place_all(session: Session, trial: Statement, job: Job, pending: PendingTasks) -> bool:
    """A job without sub-groups: its one sub-job is the job."""
    return all(_place_sub_job(session, trial, sub_job, tasks) for sub_job, tasks in pending.items())


def _place_sub_groups(session: Session, trial: Statement, job: Job, pending: PendingTasks) -> bool:
    """Sub-group by sub-group until the job is ready; one that gains nothing is dropped for the rest of the action."""
    while pending:
        sub_job, tasks = pending.pop()
        session.clear_failed_roles(sub_job)
        with session.statement() as part:
            if not _place_sub_job(session, part, sub_job, tasks) or not len(part):
                continue
            part.keep()
        if tasks:
            pending.push(sub_job, tasks)
        if session.rules.job_ready(job):
            break
    return len(trial) > 0 and (session.rules.job_ready(job) or session.rules.job_pipelined(job))


def _place_sub_job(session: Session, trial: Statement, sub_job: SubJob, tasks: list[Task]) -> bool:
    """Place tasks one after the other until the sub-job is ready; whether it is, or will be."""
    while tasks:
        task = tasks.pop()
        if not _may_be_placed(session, sub_job, task):
            continue
        place = _find_node(session, task)
        if isinstance(place, Verdict):
            session.explain(task, place)
            if worth_going_on(session, sub_job):
                continue
            break
        if trial.assign(task, place) is None and session.sub_job_ready(sub_job):
            break
    return session.sub_job_ready(sub_job) or session.sub_job_pipelined(sub_job)


def _may_be_placed(session: Session, sub_job: SubJob, task: Task) -> bool:
    queue = sub_job.job.queue
    if queue is None or not session.rules.allocatable(queue, task):
        return False
    if task.gates:
        if _may_lift_gate(session, task):
            session.lift_gate(task)
        return False
    if task.role and task.role in session.failed_roles(sub_job):
        session.explain(task, verdict_text(names.ROLE_ALREADY_FAILED.format(task=task.name, role=task.role)))
        return False
    return True


def _may_lift_gate(session: Session, task: Task) -> bool:
    """Whether only our own gate holds a task, and it asked for that (spec 05 6.5)."""
    gate = names.QUEUE_ALLOCATION_GATE
    return (
        names.QUEUE_ADMISSION in session.features
        and task.gates == (gate,)
        and task.annotations.get(gate) == "true"
    )


def _find_node(session: Session, task: Task) -> Place | Verdict:
    """The node that was nominated for the task if it still serves, else the best of all."""
    nominated = session.cluster.nodes.get(task.nominated) if task.nominated else None
    if nominated is not None and nominated.row >= 0:
        place = session.place(task, session.only(nominated))
        if isinstance(place, Place):
            return place
    return session.place(task)
