"""Place tasks that ask for nothing: they fit wherever a node lets them in (spec 02 4.1)."""

from __future__ import annotations

from dataclasses import dataclass

from stromboli.api import names
from stromboli.engine.catalog import action
from stromboli.engine.placement.node_fit import fits
from stromboli.engine.placement.node_placement import Place
from stromboli.engine.placement.verdict import Verdict, verdict_of
from stromboli.engine.redistribution import redistribute
from stromboli.engine.session import Session
from stromboli.model.dimensions import Dimensions
from stromboli.model.job import Job
from stromboli.model.node_columns import Ints, Node
from stromboli.model.status import Status
from stromboli.model.task import Task
from stromboli.policy.arguments import arg
from stromboli.policy.ignored_arguments import error_cache


@dataclass(frozen=True, slots=True)
class Arguments:
    """Arguments of the backfill action."""

    predicate_error_cache: bool = error_cache()
    redistribution: bool = arg(
        "enableBackFillNonBestEffortPods",
        False,
        "Also hand on what gangs that did not get ready hold to jobs of the same queue that can start with it.",
    )


@action("backfill", Arguments)
def backfill(session: Session) -> None:
    """Place best-effort tasks one by one, on any node that takes them; then, if asked to, redistribute."""
    nominated: dict[Task, Node] = {}
    awake = session.waits.awake(session)  # who waits for room has no task that asks for nothing
    candidates = [job for job in awake if _takes_part(session, job, nominated)]
    for job in list(session.jobs_by_queue(candidates).drain()):
        with session.guard(job):
            for task in sorted(_best_effort(job), key=session.task_key):
                _place(session, job, task)
    for task, node in nominated.items():
        if task.status is Status.PENDING:
            session.give(task, Status.PIPELINED, node)
    if session.arguments("backfill").redistribution:
        redistribute(session)


def _takes_part(session: Session, job: Job, nominated: dict[Task, Node]) -> bool:
    """Whether a job has tasks to place. Pipelined ones are tried again; nodes that were cleared for them are noted."""
    with session.guard(job):
        if job.waits_for_queue or session.rules.job_valid(job) is not None:
            return False
        for task in [task for task in job.by_status[Status.PIPELINED] if task.best_effort]:
            if task.node is not None and session.is_nominated(task):
                nominated[task] = task.node
            session.move(task, Status.PENDING, None)
        return bool(_best_effort(job))
    return False


def _best_effort(job: Job) -> list[Task]:
    if not job.pending_best_effort:
        return []
    return [task for task in job.by_status[Status.PENDING] if task.best_effort and not task.gates]


def _place(session: Session, job: Job, task: Task) -> None:
    """Put a task on the best node; once its job is ready, all that the job holds is bound."""
    place = _find_node(session, task)
    if isinstance(place, Verdict):
        session.explain(task, place)
        return
    refused = session.give(task, Status.ALLOCATED, place.node)
    if refused is not None:
        session.explain(task, verdict_of(refused))
    elif session.rules.job_ready(job):
        session.bind_allocated(job)


def _find_node(session: Session, task: Task) -> Place | Verdict:
    """The best node that has room now; an overloaded one would be refused by the last check before the bind."""
    best = session.place(task, resource_fit=False)
    dims, idle = session.cluster.dims, session.cluster.reservations.idle_for(task)
    if isinstance(best, Verdict) or not (lacking := _lacking(dims, idle, task, best.node.row)):
        return best
    elsewhere = session.place(task, fits(task, idle), resource_fit=False)
    if isinstance(elsewhere, Place):
        return elsewhere
    return Verdict(text=names.INSUFFICIENT.format(dims.names[lacking[0]]), dim=lacking[0])


def _lacking(dims: Dimensions, idle: Ints, task: Task, row: int) -> list[int]:
    """The resources of which a node has too little idle for a task."""
    return [dim for dim in dims.ordered(task.dims) if idle[dim, row] < task.request.get(dim, 0)]
