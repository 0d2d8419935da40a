"""Room for a whole gang at once: evict bundles in a domain until every pending task of the job has a place (spec 02 7).

A trial is a statement: victims leave, tasks are placed, and unless all of them find room it is as if nothing had been.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from stromboli.engine.arguments import arg
from stromboli.engine.bundles import Bundle, bundles_of, shrink
from stromboli.engine.evaluation import fits
from stromboli.engine.manners import Manners
from stromboli.engine.plugin import Eviction
from stromboli.engine.starving import seal, starving_jobs
from stromboli.engine.transaction import EvictionNote
from stromboli.engine.worksheet import worksheet
from stromboli.model.amounts import Amounts, less_equal, shift, total_of
from stromboli.model.status import Status

if TYPE_CHECKING:
    from stromboli.engine.nodefunctions import Bools
    from stromboli.engine.session import Session
    from stromboli.engine.statement import Statement
    from stromboli.model.job import Job, SubJob
    from stromboli.model.nodes import Node
    from stromboli.model.queue import Queue
    from stromboli.model.task import Task

MOST_DOMAINS = 8


@dataclass(frozen=True, slots=True)
class Arguments(Manners):
    """Arguments that gangpreempt and gangreclaim share."""

    most_domains: int = arg("maxDomains", MOST_DOMAINS, "How many domains to try; 0 or less: 8.")
    whole_bundles: bool = arg(
        "allowWholeBundle", True, "Whether a gang may be evicted whole, not just its surplus."
    )


@dataclass(frozen=True, slots=True)
class Raid:
    """How one of the gang actions goes about it."""

    action: str
    kind: str
    """What plugins are asked about: "preempt" or "reclaim"."""
    statuses: tuple[Status, ...]
    from_job: Callable[[Job, Job], bool]
    order: Callable[[Session, list[Bundle], Queue, Amounts], list[Bundle]]
    may_begin: Callable[[Session, Queue, list[Task]], bool]
    skip: Callable[[Queue], bool] | None = None


def raid(session: Session, how: Raid) -> None:
    """Queue by queue, job by job: whoever starves gets a plan that lets it start, or nothing."""
    arguments: Arguments = session.arguments(how.action)
    for _, jobs in session.backlog(starving_jobs(session)).visits(skip=how.skip):
        for job in jobs:
            with session.attempt(job), session.statement() as trial:
                if _plan(session, how, arguments, job) and session.rules.job_pipelined(job):
                    seal(session, trial, arguments)


def _plan(session: Session, how: Raid, arguments: Arguments, job: Job) -> bool:
    """Find a domain and bundles with which the job can start; the moves stay in the statement around."""
    sheet = _pending(session, job)
    tasks = [task for part in sheet.values() for task in part]
    if not tasks or job.queue is None or not all(task.preempts for task in tasks):
        return False
    if not how.may_begin(session, job.queue, tasks):
        return False
    need = total_of(task.request for task in tasks)
    most = arguments.most_domains if arguments.most_domains > 0 else MOST_DOMAINS
    return any(
        _raid_domain(session, how, arguments, job, sheet, need, domain)
        for domain in session.domains(job, "evict")[:most]
    )


def _pending(session: Session, job: Job) -> dict[SubJob, list[Task]]:
    """Ungated pending tasks by sub-job; of a job that is ready, just the first sub-job that has any."""
    sheet, pending = worksheet(session, job), {}
    while sheet:
        sub_job, tasks = sheet.pop()
        if ungated := [task for task in reversed(tasks) if not task.gates]:
            pending[sub_job] = ungated
            if session.rules.job_ready(job):
                break
    return pending


def _raid_domain(
    session: Session,
    how: Raid,
    arguments: Arguments,
    job: Job,
    sheet: dict[SubJob, list[Task]],
    need: Amounts,
    domain: Bools,
) -> bool:
    """Add bundle after bundle until they could be enough, then try; failing that, go on adding."""
    bundles = _bundles(session, how, arguments, job, need, domain)
    room = _room(session, domain)
    victims: list[Task] = []
    for bundle in bundles:
        victims += bundle.tasks
        shift(room, bundle.frees)
        if less_equal(need, room) and _try(session, how, job, sheet, victims, domain):
            return True
    return False


def _room(session: Session, domain: Bools) -> Amounts:
    columns = session.cluster.columns
    free = (columns.idle + columns.releasing)[:, domain]
    return columns.total(free)


def _bundles(
    session: Session, how: Raid, arguments: Arguments, job: Job, need: Amounts, domain: Bools
) -> list[Bundle]:
    """What may go in a domain, in the order in which it goes."""
    queue = job.queue
    if queue is None:
        return []
    found = [
        bundle
        for other in session.jobs()
        if other is not job and other.yields and how.from_job(job, other)
        for bundle in bundles_of(other, _inside(session, arguments, other, how.statuses, domain))
    ]
    offered = [task for bundle in how.order(session, found, queue, need) for task in bundle.tasks]
    allowed = (
        set(session.rules.unified_evictable(Eviction(how.kind, job), offered).victims) if offered else set()
    )
    return how.order(session, shrink(found, allowed, arguments.whole_bundles), queue, need)


def _inside(
    session: Session, manners: Manners, job: Job, statuses: tuple[Status, ...], domain: Bools
) -> list[Task]:
    return [
        task
        for status in statuses
        for task in job.by_status[status]
        if task.preemptable
        and task.node is not None
        and task.node.row >= 0
        and domain[task.node.row]
        and manners.lets_go(session, task)
    ]


# -- trying it out


def _try(
    session: Session, how: Raid, job: Job, sheet: dict[SubJob, list[Task]], victims: list[Task], domain: Bools
) -> bool:
    """Let the victims go and place everybody; it stays done only if the job can then start."""
    was_ready = session.rules.job_ready(job)
    note = EvictionNote(how.action, job.key, f"{how.kind} of whole gangs or their surplus")
    with session.statement() as trial:
        for victim in victims:
            trial.evict(victim, note)
        for sub_job, tasks in sheet.items():
            if not _place_all(session, trial, sub_job, tasks, domain, bool(victims)):
                return False
            if was_ready or session.rules.job_pipelined(job):
                break
        if session.rules.job_pipelined(job):
            trial.keep()
            return True
    return False


def _place_all(
    session: Session, trial: Statement, sub_job: SubJob, tasks: list[Task], domain: Bools, evicted: bool
) -> bool:
    queue = sub_job.job.queue
    for task in tasks:
        if queue is None or not session.rules.allocatable(queue, task):
            return False
        node = _best(session, task, domain)
        if node is None or trial.pipeline(task, node, evicted) is not None:
            return False
    return session.sub_job_ready(sub_job) or session.sub_job_pipelined(sub_job)


def _best(session: Session, task: Task, domain: Bools) -> Node | None:
    """The best node with room now, else with room to come; what an eviction may cure keeps nobody out here."""
    columns = session.cluster.columns
    reach = domain & session.reachable(task)
    later = reach & fits(task, columns.idle + columns.releasing - columns.pipelined)
    now = later & fits(task, columns.idle)
    for group in (now, later):
        if np.any(group):
            return next(session.ranked(task, group))
    return None
