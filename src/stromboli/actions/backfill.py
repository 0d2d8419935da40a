"""Place tasks that request nothing: they fit on every node that admits them (spec 02 4.1)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from stromboli.api import names
from stromboli.engine.catalog import action
from stromboli.engine.eviction.victim_candidates import VictimCandidates, VictimIndex, in_victim_order
from stromboli.engine.pending_tasks import worth_going_on
from stromboli.engine.placement.node_fit import fits
from stromboli.engine.placement.node_placement import Place
from stromboli.engine.placement.verdict import Verdict, verdict_of
from stromboli.engine.session import Session
from stromboli.engine.statement import Statement
from stromboli.engine.topology.topology_limits import label_key
from stromboli.model.dimensions import Dimensions
from stromboli.model.job import Job
from stromboli.model.node_columns import Ints, Node
from stromboli.model.queue import Queue
from stromboli.model.remedy import Why
from stromboli.model.status import Status
from stromboli.model.task import Task
from stromboli.policy.arguments import arg, error_cache


@dataclass(frozen=True, slots=True)
class Arguments:
    """Arguments of the backfill action."""

    predicate_error_cache: bool = error_cache()
    redistribution: bool = arg(
        "enableBackFillNonBestEffortPods",
        False,
        "Also reassign what gangs that are not ready hold to jobs of the same queue that can start with it.",
    )


@action("backfill", Arguments, for_waiting=True)
def backfill(session: Session) -> None:
    """Place best-effort tasks one by one; optionally reassign capacity of gangs that are not ready."""
    nominated: dict[Task, Node] = {}
    unparked = session.waits.unparked(session)  # parked jobs have no best-effort tasks
    candidates = [job for job in unparked if _takes_part(session, job, nominated)]
    for job in list(session.jobs_by_queue(candidates).drain()):
        with session.guard(job):
            for task in sorted(_best_effort(job), key=session.task_key):
                _place_best_effort(session, job, task)
    for task, node in nominated.items():
        if task.status is Status.PENDING:
            session.journal.give(task, Status.PIPELINED, node)
    if session.arguments("backfill").redistribution:
        redistribute(session)


def _takes_part(session: Session, job: Job, nominated: dict[Task, Node]) -> bool:
    """Whether a job has tasks to place. Pipelined ones are tried again; nodes that were cleared for them are noted."""
    with session.guard(job):
        if job.waits_for_queue or session.rules.job_valid(job) is not None:
            return False
        for task in [task for task in job.by_status[Status.PIPELINED] if task.best_effort]:
            if task.node is not None and session.journal.is_nominated(task):
                nominated[task] = task.node
            session.journal.move(task, Status.PENDING, None)
        return bool(_best_effort(job))
    return False


def _best_effort(job: Job) -> list[Task]:
    if not job.pending_best_effort:
        return []
    return [task for task in job.by_status[Status.PENDING] if task.best_effort and not task.gates]


def _place_best_effort(session: Session, job: Job, task: Task) -> None:
    """Put a task on the best node; once its job is ready, all that the job holds is bound."""
    place = _find_node(session, task)
    if isinstance(place, Verdict):
        session.explain(task, place)
        return
    refused = session.journal.give(task, Status.ALLOCATED, place.node)
    if refused is not None:
        session.explain(task, verdict_of(refused))
    elif session.rules.job_ready(job):
        session.journal.bind_allocated(job)


def _find_node(session: Session, task: Task) -> Place | Verdict:
    """The best node that is not overloaded: the last check before the bind would refuse such a node."""
    best = session.place(task, resource_fit=False)
    dims, idle = session.cluster.dims, session.cluster.reservations.idle_for(task)
    if isinstance(best, Verdict) or not (lacking := _lacking(dims, idle, task, best.node.row)):
        return best
    elsewhere = session.place(task, fits(task, idle), resource_fit=False)
    if isinstance(elsewhere, Place):
        return elsewhere
    return Verdict(why=Why(names.INSUFFICIENT.format(dims.names[lacking[0]])), dim=lacking[0])


def _lacking(dims: Dimensions, idle: Ints, task: Task, row: int) -> list[int]:
    """The resources of which a node has too little idle for a task."""
    return [dim for dim in dims.ordered(task.dims) if idle[dim, row] < task.request.get(dim, 0)]


# -- redistribution: jobs start with what gangs of their queue hold that did not get ready (spec 02 4.2)
#
# The tasks that give up their capacity do not run yet, so no pod is evicted. An attempt that fails is undone.


def redistribute(session: Session) -> None:
    """Queue by queue, job by job: start jobs that can start with what unready gangs hold."""
    queues = {job.queue for job in session.jobs() if _holds_idle_capacity(session, job)}
    candidates = [
        job for job in list(session.cluster.backlog) if job.queue in queues and _may_benefit(session, job)
    ]
    jobs_by_queue = session.jobs_by_queue(candidates)
    for _, jobs in jobs_by_queue.visits():
        for job in jobs:
            with session.guard(job):
                for next_job in _start(session, job):
                    jobs_by_queue.push(next_job)


def _holds_idle_capacity(session: Session, job: Job) -> bool:
    """Whether a job keeps capacity that it cannot start with; not if pods were evicted for it."""
    return (
        job.counts[Status.ALLOCATED] > 0
        and not session.rules.job_ready(job)
        and not any(session.journal.is_nominated(task) for task in job.by_status[Status.PIPELINED])
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
    """Try to start a job; returns the jobs that should have another turn after it."""
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
    session.journal.bind_allocated(job)
    donors = dict.fromkeys(change.task.job for change in released if change.task.job is not None)
    for change in released:
        if change.old_node is not None:
            text, title = (
                template.format(node=change.old_node.name, job=job.key)
                for template in (names.REDISTRIBUTED, names.REDISTRIBUTED_TITLE)
            )
            session.explain(change.task, Verdict(why=Why(text, code="Redistributed", title=title)))
    for donor in donors:
        _release_promises(session, donor)
    return [other for other in (job, *donors) if _eligible(other) and _may_benefit(session, other)]


def _release_promises(session: Session, job: Job) -> None:
    """A job that lost capacity and can no longer start gives up what is pipelined for it."""
    if not session.rules.job_pipelined(job):
        for task in list(job.by_status[Status.PIPELINED]):
            session.journal.move(task, Status.PENDING, None)


def _place_tasks(session: Session, trial: Statement, job: Job, tasks: list[Task]) -> int:
    placed = 0
    for task in tasks:
        if _place_or_release(session, trial, job, task, first=not placed):
            placed += 1
            if session.rules.job_ready(job):
                break
        elif task.sub_job is None or not worth_going_on(session, task.sub_job):
            break
    return placed


def _place_or_release(session: Session, trial: Statement, job: Job, task: Task, first: bool) -> bool:
    """Allocate on a node where the task fits now, else on the best one where victims can be released."""
    queue = job.queue
    if queue is None:
        return False
    place = session.place(task)
    if isinstance(place, Place) and place.now and _queue_allows(session, queue, task, first):
        return trial.allocate(task, place.node) is None
    victims = _victims(session, queue, task)
    free = session.cluster.columns.idle + victims.held
    candidates = session.reachable(task) & victims.held.any(axis=0) & fits(task, free)
    for node in session.ranked(task, candidates):
        on_node = [victim for victim in node.tasks if victim in victims]
        if _release_and_allocate(session, queue, task, node, on_node, first):
            return True
    if isinstance(place, Verdict):
        session.explain(task, place)
    return False


def _queue_allows(session: Session, queue: Queue, task: Task, first: bool) -> bool:
    return session.rules.allocatable(queue, task) and not (first and session.rules.overused(queue))


def _victims(session: Session, queue: Queue, task: Task) -> VictimIndex:
    """Allocated tasks of unready gangs in the queue that plugins allow to be victims."""
    candidates = VictimCandidates(
        "backfill_victim",
        (Status.ALLOCATED,),
        lambda task, job: job is not task.job and _holds_idle_capacity(session, job),
        accepts=lambda task, victim: not victim.best_effort and session.rules.backfill_victim(task, victim),
    )
    victims = VictimIndex(session, candidates, queue)
    victims.update(task)
    return victims


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
