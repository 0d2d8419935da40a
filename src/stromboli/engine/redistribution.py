"""Backfill from gangs that did not get ready: jobs of their queue start with what they hold (spec 02 4.2).

The tasks that give up their room do not run yet, so no pod is evicted. An attempt that fails is undone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from stromboli.api import names
from stromboli.engine.eviction.victim_candidates import held_by_node, in_victim_order, rows_by_shape
from stromboli.engine.pending_tasks import worth_going_on
from stromboli.engine.placement.node_fit import fits
from stromboli.engine.placement.node_placement import Place
from stromboli.engine.placement.verdict import Verdict, verdict_text
from stromboli.engine.topology.label_topology import label_key
from stromboli.model.status import Status

if TYPE_CHECKING:
    from stromboli.engine.session import Session
    from stromboli.engine.statement import Statement
    from stromboli.model.job import Job
    from stromboli.model.node_columns import Node
    from stromboli.model.queue import Queue
    from stromboli.model.task import Task


def redistribute(session: Session) -> None:
    """Queue by queue, job by job: start jobs that can start with what unready gangs hold."""
    queues = {job.queue for job in session.jobs() if _holds_idle_room(session, job)}
    candidates = [
        job for job in list(session.cluster.backlog) if job.queue in queues and _may_benefit(session, job)
    ]
    jobs_by_queue = session.jobs_by_queue(candidates)
    for _, jobs in jobs_by_queue.visits():
        for job in jobs:
            with session.guard(job):
                for next_job in _start(session, job):
                    jobs_by_queue.push(next_job)


def _holds_idle_room(session: Session, job: Job) -> bool:
    """Whether a job keeps room that it cannot start with; not if pods were evicted for it."""
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
            and not label_key(job)
            and session.rules.job_valid(job) is None
            and bool(_eligible(job))
            and session.rules.backfill_beneficiary(job)
        )
    return False


def _eligible(job: Job) -> list[Task]:
    return [task for task in job.by_status[Status.PENDING] if not task.best_effort and not task.gates]


def _start(session: Session, job: Job) -> Iterable[Job]:
    """Try to start a job; gives the jobs that should have another turn after it."""
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
    donors = dict.fromkeys(change.task.job for change in released if change.task.job is not None)
    for change in released:
        if change.old_node is not None:
            text = names.REDISTRIBUTED.format(node=change.old_node.name, job=job.key)
            session.explain(change.task, verdict_text(text))
    for donor in donors:
        _release_promises(session, donor)
    return [other for other in (job, *donors) if _eligible(other) and _may_benefit(session, other)]


def _release_promises(session: Session, job: Job) -> None:
    """A job that lost room and can no longer start gives up what is pipelined for it."""
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
        elif task.sub_job is None or not worth_going_on(session, task.sub_job):
            break
    return placed


def _place(session: Session, trial: Statement, job: Job, task: Task, first: bool) -> bool:
    """Allocate on a node that has room now, else on the best one where victims can be released."""
    queue = job.queue
    if queue is None:
        return False
    place = session.place(task)
    if isinstance(place, Place) and place.now and _queue_allows(session, queue, task, first):
        return trial.allocate(task, place.node) is None
    victims = _victims(session, queue, task)
    for node in _nodes_with_room(session, task, victims):
        if _release_and_allocate(session, queue, task, node, victims[node], first):
            return True
    if isinstance(place, Verdict):
        session.explain(task, place)
    return False


def _queue_allows(session: Session, queue: Queue, task: Task, first: bool) -> bool:
    return session.rules.allocatable(queue, task) and not (first and session.rules.overused(queue))


def _victims(session: Session, queue: Queue, task: Task) -> dict[Node, list[Task]]:
    """By node, allocated tasks of unready gangs in the queue that plugins allow to be victims."""
    by_node: dict[Node, list[Task]] = {}
    for job in queue.jobs:
        if job is not task.job and _holds_idle_room(session, job):
            for victim in job.by_status[Status.ALLOCATED]:
                if (
                    victim.node is not None
                    and not victim.best_effort
                    and session.rules.backfill_victim(task, victim)
                ):
                    by_node.setdefault(victim.node, []).append(victim)
    return by_node


def _nodes_with_room(session: Session, task: Task, victims: Mapping[Node, list[Task]]) -> Iterable[Node]:
    """Nodes that would have room if all victims there were released, the best first."""
    columns = session.cluster.columns
    freed = held_by_node(columns, rows_by_shape(each for on_node in victims.values() for each in on_node))
    candidates = session.reachable(task) & freed.any(axis=0) & fits(task, columns.idle + freed)
    return session.ranked(task, candidates)


def _release_and_allocate(
    session: Session, queue: Queue, task: Task, node: Node, victims: list[Task], first: bool
) -> bool:
    """Release victims on a node, one by one, until the task fits there right now; all or nothing."""
    with session.statement() as trial:
        for victim in in_victim_order(session, task, victims):
            if _fits(session, queue, task, node, first):
                break
            trial.release(victim)
        if _fits(session, queue, task, node, first) and trial.allocate(task, node) is None:
            trial.keep()
            return True
    return False


def _fits(session: Session, queue: Queue, task: Task, node: Node, first: bool) -> bool:
    place = session.place(task, session.only(node))
    return isinstance(place, Place) and place.now and _queue_allows(session, queue, task, first)
