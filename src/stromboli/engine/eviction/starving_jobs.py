"""The walk over starving jobs, for which evicting actions free capacity (spec 02 5, 6, 7)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from stromboli.engine.eviction.eviction_commit import commit_evictions, lost_pods_lately
from stromboli.engine.eviction.eviction_domains import (
    DEFAULT_MAX_DOMAINS,
    domains_of_job,
    domains_of_sub_job,
    is_confined,
    nominate_hyper_nodes,
)
from stromboli.engine.topology.topology_limits import label_key
from stromboli.model.status import Status

if TYPE_CHECKING:
    from stromboli.engine.eviction.victim_selection import VictimSelection
    from stromboli.engine.session import Session
    from stromboli.engine.statement import Statement
    from stromboli.engine.waiting.capacity_waits import WaitGroup
    from stromboli.model.job import Job, SubJob
    from stromboli.model.queue import Queue
    from stromboli.model.task import Task
    from stromboli.model.topology.domain import Domain

Serve = Callable[["VictimSelection", "Task", "Domain | None"], bool]
"""Finds a node for one task, in a domain or anywhere, and evicts there if needed; whether it found one."""


def starving_jobs(
    session: Session,
    serves: Callable[[Job], bool] | None = None,
    may_help: Callable[[WaitGroup], bool] | None = None,
) -> list[Job]:
    """Jobs that an action serves, are admitted, may be scheduled and are short of what they need.

    With `may_help`, less those that wait for capacity of which the action could not free enough.
    """
    jobs = (
        list(session.cluster.backlog)
        if may_help is None
        else session.waits.worth_evicting_for(session, may_help)
    )
    return [job for job in jobs if (serves is None or serves(job)) and _is_starving(session, job)]


def _is_starving(session: Session, job: Job) -> bool:
    with session.guard(job):
        return (
            not job.waits_for_queue
            and job not in session.reports.failed
            and session.rules.job_valid(job) is None
            and session.rules.job_starving(job)
        )
    return False


def pending_ungated(session: Session, job: Job) -> list[Task]:
    """A job's pending tasks in order, without those that are held at a gate."""
    return sorted((task for task in job.by_status[Status.PENDING] if not task.gates), key=session.task_key)


def evict_for_job(search: VictimSelection, job: Job, serve: Serve) -> frozenset[Queue]:
    """Serve the tasks of a job while it starves; nothing is evicted unless the job can start with what they get.

    A job that may not span the whole cluster is served within one of its domains. Returns the other queues of which
    pods would have been evicted against the shares, if that is why none were.
    """
    session, options = search.session, search.options
    if lost_pods_lately(session, job, options):
        return frozenset()
    if is_confined(session, job):
        return _evict_in_domains(search, job, serve)
    with session.guard(job), session.statement() as trial:
        _serve_tasks(search, pending_ungated(session, job), serve, None)
        if session.rules.job_pipelined(job) and not commit_evictions(session, trial, options, job):
            return _other_queues(job, trial)
    return frozenset()


def _other_queues(job: Job, trial: Statement) -> frozenset[Queue]:
    """The queues that lose tasks in a statement, without that of a job."""
    queues = (victim.job.queue for victim in trial.evicted() if victim.job is not None)
    return frozenset(queue for queue in queues if queue is not None and queue is not job.queue)


def _serve_tasks(search: VictimSelection, tasks: list[Task], serve: Serve, within: Domain | None) -> None:
    for task in tasks:
        if task.job is None or not search.session.rules.job_starving(task.job):
            break
        serve(search, task, within)


def _evict_in_domains(search: VictimSelection, job: Job, serve: Serve) -> frozenset[Queue]:
    """Domain by domain, until the job can start in one of them."""
    session = search.session
    with session.guard(job):
        tasks, needed = pending_ungated(session, job), session.rules.tasks_needed(job)
        promising = search.promising(domains_of_job(session, job), tasks, needed)
        for domain in promising if label_key(job) else promising[:DEFAULT_MAX_DOMAINS]:
            with session.statement() as trial:
                chosen = _serve_sub_jobs(search, job, domain, serve)
                if len(trial) and session.rules.job_pipelined(job):
                    if not commit_evictions(session, trial, search.options, job):
                        return _other_queues(job, trial)
                    nominate_hyper_nodes(session, chosen)
                    break
    return frozenset()


def _serve_sub_jobs(search: VictimSelection, job: Job, domain: Domain, serve: Serve) -> dict[SubJob, Domain]:
    """Serve each sub-group in the first of its domains in which it can start; gives that domain."""
    session = search.session
    waiting: dict[SubJob, list[Task]] = {}
    for task in pending_ungated(session, job):
        if task.sub_job is not None:
            waiting.setdefault(task.sub_job, []).append(task)
    chosen: dict[SubJob, Domain] = {}
    for sub_job, tasks in waiting.items():
        for place in domains_of_sub_job(session, sub_job, domain):
            with session.statement() as trial:
                _serve_tasks(search, tasks, serve, place)
                if len(trial) and (session.sub_job_ready(sub_job) or session.sub_job_pipelined(sub_job)):
                    chosen[sub_job] = place
                    trial.keep()
                    break
    return chosen


def pipeline_without_eviction(session: Session, task: Task, within: Domain | None = None) -> bool:
    """Pipeline a task to capacity that is free, or is being freed already, in a domain or anywhere."""
    queue = session.queue_of(task)
    if queue is None or not session.rules.allocatable(queue, task):
        return False
    mask = within.mask(len(session.cluster.columns)) if within is not None else None
    if session.refused(task):
        return False
    within_gang = session.topology.nodes(task, mask)
    place = session.placement.find_quietly(session.cluster, task, within_gang)
    if place is None:
        return False
    with session.statement() as trial:
        if trial.pipeline(task, place.node, evicted=not place.now) is not None:
            return False
        trial.keep()
    return True
