"""Let urgent jobs take the places of lesser ones in their queue, and tasks those of others in their job (spec 02 6)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

from stromboli.api import names
from stromboli.engine.catalog import action
from stromboli.engine.eviction.eviction_commit import commit_evictions, lost_pods_lately
from stromboli.engine.eviction.eviction_domains import asks_for_topology
from stromboli.engine.eviction.eviction_options import EvictionOptions
from stromboli.engine.eviction.node_clearing import clear_node, has_enough, restore_spared, would_admit
from stromboli.engine.eviction.starving_jobs import (
    make_room_for_job,
    pending_ungated,
    pipeline_without_eviction,
    starving_jobs,
)
from stromboli.engine.eviction.victim_candidates import VictimCandidates
from stromboli.engine.eviction.victim_selection import VictimSelection
from stromboli.engine.points import Choice
from stromboli.engine.session import Session
from stromboli.engine.statement import Statement
from stromboli.engine.transaction import EvictionReason
from stromboli.model.job import Job
from stromboli.model.node_columns import Node
from stromboli.model.status import Status
from stromboli.model.task import Task
from stromboli.model.topology.domain import Domain
from stromboli.policy.arguments import arg
from stromboli.policy.ignored_arguments import error_cache


@dataclass(frozen=True, slots=True)
class Arguments(EvictionOptions):
    """Arguments of the preempt action."""

    predicate_error_cache: bool = error_cache()
    topology_aware: bool = arg(
        "enableTopologyAwarePreemption",
        False,
        "Compare several nodes by whom they would lose, and let back in whom the task can do without.",
    )
    workers: int = arg(
        "topologyAwarePreemptWorkerNum", 16, "Accepted for compatibility; nodes are tried in order."
    )
    candidate_percentage: int = arg(
        "minCandidateNodesPercentage", 10, "How many of the nodes to compare, in percent."
    )
    min_candidates: int = arg("minCandidateNodesAbsolute", 1, "How many nodes to compare at least.")
    max_candidates: int = arg("maxCandidateNodesAbsolute", 100, "How many nodes to compare at most.")


@action("preempt", Arguments)
def preempt(session: Session) -> None:
    """Per queue: job against job first, then, within each job that starved, task against task."""
    arguments: Arguments = session.arguments("preempt")
    may_evict = arguments.may_evict(session)

    def accepts(task: Task, victim: Task) -> bool:
        return _may_be_victim_of(task, victim) and may_evict(task, victim)

    candidates = VictimCandidates(
        "preemptable",
        (Status.BOUND, Status.RUNNING),
        _is_other_job,
        accepts,
        key=_priorities,
        scope=session.queue_of,
    )
    between_jobs = VictimSelection(session, candidates, arguments)
    of_same_job = replace(candidates, may_take_from=_is_same_job, scope=lambda task: task.job)
    within_job = VictimSelection(session, of_same_job, arguments)
    # Within a job, each task is served by itself, unless room for it alone is known to be of no use.
    may_help = partial(between_jobs.may_make_room, one_by_one=not arguments.fewest_victims)
    starving = starving_jobs(session, lambda job: not asks_for_topology(job), may_help)
    for _, jobs in session.jobs_by_queue(starving).visits():
        visited = []
        for job in jobs:
            visited.append(job)
            make_room_for_job(between_jobs, job, partial(_make_room, between_jobs, arguments))
        for job in visited:
            _preempt_within(session, within_job, arguments, job)


def _is_other_job(task: Task, job: Job) -> bool:
    return task.job is not None and job is not task.job and job.queue is task.job.queue


def _is_same_job(task: Task, job: Job) -> bool:
    """A group that may only be evicted as a whole does not evict its own tasks."""
    return job is task.job and not job.disrupted_as_group


def _priorities(task: Task) -> tuple[int, int]:
    return (task.job.priority if task.job is not None else 0, task.priority)


def _may_be_victim_of(task: Task, victim: Task) -> bool:
    """A best-effort task evicts best-effort tasks only."""
    return victim.best_effort or not task.best_effort


def _preempt_within(session: Session, search: VictimSelection, arguments: Arguments, job: Job) -> None:
    """Within a job, each task by itself; the first that finds no place ends it."""
    if lost_pods_lately(session, job, arguments):
        return
    with session.guard(job):
        for task in pending_ungated(session, job):
            with session.statement() as trial:
                if not _make_room(search, arguments, trial, task, None):
                    return
                if arguments.fewest_victims and not session.rules.job_pipelined(job):
                    return  # room for one task is of no use to a gang that cannot start with it
                commit_evictions(session, trial, arguments, job)


def _make_room(
    search: VictimSelection, arguments: Arguments, trial: Statement, task: Task, within: Domain | None
) -> bool:
    session = search.session
    if not task.may_preempt or not arguments.has_waited(session, task):
        return False
    if arguments.fewest_victims and pipeline_without_eviction(session, trial, task, within):
        return True
    if _waits_for_nominated_node(session, task):
        return False
    clear = partial(_clear_best, arguments) if arguments.topology_aware else _clear_first
    return search.run(task, clear, within)


def _waits_for_nominated_node(session: Session, task: Task) -> bool:
    """Whether the node that was cleared for a task admits it or is about to be free; then no more pods are evicted."""
    if not task.nominated:
        return False
    node = session.cluster.nodes.get(task.nominated)
    if node is None or node.row < 0 or session.admits(task, node):
        return True
    return bool(session.reachable(task)[node.row]) and any(
        other.preempted and other.pod_priority < task.pod_priority for other in node.tasks
    )


def _clear_first(search: VictimSelection, task: Task, within: Domain | None) -> bool:
    """Evict on the first node by score to which the task is then admitted."""
    for node in search.nodes_by_score(task, within):
        choice = search.choose(task, node) or Choice([])
        if not has_enough(search.session, task, node, choice.victims):
            continue
        if clear_node(search, names.EVICTED_BY_PREEMPT, task, node, choice, would_admit, within):
            return True
    return False


# -- topology-aware: comparing nodes by their victims


def _clear_best(arguments: Arguments, search: VictimSelection, task: Task, within: Domain | None) -> bool:
    """Of several nodes the one that loses least; one that loses nobody wins at once (spec 02 6.4)."""
    session = search.session
    share = len(session.cluster.columns) * arguments.candidate_percentage // 100
    limit = min(arguments.max_candidates, max(arguments.min_candidates, share))
    plans: list[tuple[Node, Choice]] = []
    for node in search.nodes_in_order(task, within):
        choice = _needed_victims(search, task, node)
        if choice is not None:
            plans.append((node, choice))
            if not choice.victims or len(plans) == limit:
                break
    plans.sort(key=lambda plan: _loss(session, plan[1].victims))
    return any(
        clear_node(search, names.EVICTED_BY_PREEMPT, task, node, choice, would_admit, within)
        for node, choice in plans
    )


def _needed_victims(search: VictimSelection, task: Task, node: Node) -> Choice | None:
    """The victims that a node must lose for the task: evict until it fits, then restore those it can do without."""
    session, choice = search.session, search.choose(task, node) or Choice([])
    if not has_enough(session, task, node, choice.victims):
        return None
    with session.statement() as trial:
        for victim in choice.victims:
            if would_admit(session, task, node):
                break
            trial.evict(victim, EvictionReason(names.EVICTED_BY_PREEMPT))
        if not would_admit(session, task, node):
            return None
        restore_spared(session, trial, task, node)
        needed = trial.evicted()
    return choice._replace(victims=needed)


def _loss(session: Session, victims: list[Task]) -> tuple[float, ...]:
    """Smaller is better: priority of the last victim, sum of priorities, number, latest start of the highest."""
    if not victims:
        return ()
    highest = max(victim.pod_priority for victim in victims)
    starts = [
        session.now if victim.started is None else victim.started
        for victim in victims
        if victim.pod_priority == highest
    ]
    last = victims[-1].pod_priority
    return (last, sum(victim.pod_priority + 2.0**31 for victim in victims), len(victims), -min(starts))
