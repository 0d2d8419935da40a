"""What gangs that did not get ready hold goes to jobs of the same queue that can start with it (spec 02 4.2).

Nothing runs yet of what is handed on, so nobody is evicted. What does not help is given back exactly as it was.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

from stromboli.api import names
from stromboli.engine.eviction.victim_search import in_victim_order
from stromboli.engine.pending_tasks import worth_going_on
from stromboli.engine.placement.evaluation import fits
from stromboli.engine.placement.node_placement import Place
from stromboli.engine.placement.verdict import Verdict, verdict_text
from stromboli.model.status import Status

if TYPE_CHECKING:
    from stromboli.engine.session import Session
    from stromboli.engine.statement import Statement
    from stromboli.model.job import Job
    from stromboli.model.node_columns import Node
    from stromboli.model.queue import Queue
    from stromboli.model.task import Task


def redistribute(session: Session) -> None:
    """Queue by queue, job by job: start whoever can start with what unready gangs hold."""
    holders = [job for job in session.jobs() if _holds(session, job)]
    queues = dict.fromkeys(job.queue for job in holders)
    candidates = [
        job for job in list(session.cluster.backlog) if job.queue in queues and _may_benefit(session, job)
    ]
    jobs_by_queue = session.jobs_by_queue(candidates)
    for _, jobs in jobs_by_queue.visits():
        for job in jobs:
            with session.guard(job):
                for again in _help(session, job):
                    jobs_by_queue.push(again)


def _holds(session: Session, job: Job) -> bool:
    """Whether a job keeps room that it cannot start with; what was cleared for it by eviction is its own."""
    return (
        job.counts[Status.ALLOCATED] > 0
        and not session.rules.job_ready(job)
        and not any(session.is_nominated(task) for task in job.by_status[Status.PIPELINED])
    )


def _may_benefit(session: Session, job: Job) -> bool:
    with session.guard(job):
        return (
            not job.waits_for_queue
            and not job.policies
            and (job.group is None or job.group.spec.network_topology is None)
            and session.rules.job_valid(job) is None
            and bool(_eligible(job))
            and session.rules.backfill_beneficiary(job)
        )
    return False


def _eligible(job: Job) -> list[Task]:
    return [task for task in job.by_status[Status.PENDING] if not task.best_effort and not task.gates]


def _help(session: Session, job: Job) -> Iterable[Job]:
    """One job's attempt; gives the jobs that should have another turn after it."""
    tasks = sorted(_eligible(job), key=session.task_key)
    possible = job.ready_count + job.pending_best_effort + len(tasks)
    if not tasks or (not session.rules.job_ready(job) and possible < job.minimum):
        return []
    with session.statement() as trial:
        placed = _place_tasks(session, trial, job, tasks)
        if not placed or not session.rules.job_ready(job):
            return []
        released = [change for change in trial.changes() if change.status is Status.PENDING]
        trial.commit()
    session.bind_allocated(job)
    robbed = dict.fromkeys(change.task.job for change in released if change.task.job is not None)
    for change in released:
        if change.old_node is not None:
            text = names.REDISTRIBUTED.format(node=change.old_node.name, job=job.key)
            session.explain(change.task, verdict_text(text))
    for other in robbed:
        _let_go(session, other)
    return [other for other in (job, *robbed) if _eligible(other) and _may_benefit(session, other)]


def _let_go(session: Session, job: Job) -> None:
    """A robbed job that could not start any more gives up what it was promised."""
    if not session.rules.job_pipelined(job):
        for task in list(job.by_status[Status.PIPELINED]):
            session.move(task, Status.PENDING, None)


def _place_tasks(session: Session, trial: Statement, job: Job, tasks: list[Task]) -> int:
    placed = 0
    for task in tasks:
        if _place(session, trial, job, task, first=not placed):
            placed += 1
            if session.rules.job_ready(job):
                break
        elif task.group is None or not worth_going_on(session, task.group):
            break
    return placed


def _place(session: Session, trial: Statement, job: Job, task: Task, first: bool) -> bool:
    """A node that needs no release beats one that does; among these, by score."""
    queue = job.queue
    if queue is None:
        return False
    place = session.place(task)
    if isinstance(place, Place) and place.now and _allowed(session, queue, task, first):
        return trial.allocate(task, place.node) is None
    for node in _with_victims(session, queue, task):
        if _clear(session, queue, task, node, first):
            return True
    if isinstance(place, Verdict):
        session.explain(task, place)
    return False


def _allowed(session: Session, queue: Queue, task: Task, first: bool) -> bool:
    return session.rules.allocatable(queue, task) and not (first and session.rules.overused(queue))


def _victims(session: Session, queue: Queue, task: Task) -> dict[Node, list[Task]]:
    """By node, what unready gangs of the queue hold and may be asked for."""
    found: dict[Node, list[Task]] = {}
    for job in queue.jobs:
        if job is not task.job and _holds(session, job):
            for victim in job.by_status[Status.ALLOCATED]:
                if (
                    victim.node is not None
                    and not victim.best_effort
                    and session.rules.backfill_victim(task, victim)
                ):
                    found.setdefault(victim.node, []).append(victim)
    return found


def _with_victims(session: Session, queue: Queue, task: Task) -> Iterable[Node]:
    """Nodes that would have room if all victims there let go, the best first."""
    columns = session.cluster.columns
    freed = np.zeros_like(columns.idle)
    for node, victims in _victims(session, queue, task).items():
        for victim in victims:
            freed[:, node.row] += victim.shape.dense(len(freed))
    worthwhile = session.reachable(task) & freed.any(axis=0) & fits(task, columns.idle + freed)
    return session.ranked(task, worthwhile)


def _clear(session: Session, queue: Queue, task: Task, node: Node, first: bool) -> bool:
    """Let victims on a node go, one by one, until the task fits there right now; all or nothing."""
    victims = _victims(session, queue, task).get(node, [])
    with session.statement() as there:
        for victim in in_victim_order(session, task, victims):
            if _fits(session, queue, task, node, first):
                break
            there.release(victim)
        if _fits(session, queue, task, node, first) and there.allocate(task, node) is None:
            there.keep()
            return True
    return False


def _fits(session: Session, queue: Queue, task: Task, node: Node, first: bool) -> bool:
    place = session.place(task, session.only(node))
    return isinstance(place, Place) and place.now and _allowed(session, queue, task, first)
