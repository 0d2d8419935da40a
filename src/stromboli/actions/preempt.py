"""Evict lower-priority jobs for urgent ones of their queue, and lower-priority tasks within a job (spec 02 6)."""

from __future__ import annotations

from dataclasses import dataclass, replace

from stromboli.engine.catalog import action
from stromboli.engine.eviction.eviction_commit import commit_evictions, lost_pods_lately
from stromboli.engine.eviction.eviction_options import EvictionOptions
from stromboli.engine.eviction.node_clearing import (
    clear_first,
    clear_node,
    has_enough,
    restore_spared,
    would_admit,
)
from stromboli.engine.eviction.starving_jobs import (
    evict_for_job,
    pending_ungated,
    pipeline_without_eviction,
    starving_jobs,
)
from stromboli.engine.eviction.victim_candidates import VictimCandidates
from stromboli.engine.eviction.victim_selection import VictimSelection
from stromboli.engine.points import Choice
from stromboli.engine.session import Session
from stromboli.engine.topology.topology_limits import has_topology
from stromboli.engine.transaction import EvictionReason
from stromboli.model.job import Job
from stromboli.model.node_columns import Node
from stromboli.model.status import Status
from stromboli.model.task import Task
from stromboli.model.topology.domain import Domain
from stromboli.policy.arguments import arg, error_cache


@dataclass(frozen=True, slots=True)
class Arguments(EvictionOptions):
    """Arguments of the preempt action."""

    predicate_error_cache: bool = error_cache()
    topology_aware: bool = arg(
        "enableTopologyAwarePreemption",
        False,
        "Compare several nodes by their victims, and restore the victims that the task does not need.",
    )
    workers: int = arg(
        "topologyAwarePreemptWorkerNum", 16, "Accepted for compatibility; nodes are tried in order."
    )
    candidate_percentage: int = arg("minCandidateNodesPercentage", 10, "Percentage of the nodes to compare.")
    min_candidates: int = arg("minCandidateNodesAbsolute", 1, "Minimum number of nodes to compare.")
    max_candidates: int = arg("maxCandidateNodesAbsolute", 100, "Maximum number of nodes to compare.")

    def serves(self, job: Job) -> bool:
        """Not jobs that ask for a network topology, which gangpreempt serves (spec 02 6.1)."""
        return not has_topology(job)


@action("preempt", Arguments, evicts_by="preemptable", preempts=True, for_waiting=True)
def preempt(session: Session) -> None:
    """Evict lower-priority jobs of the same queue for starving jobs, then lower-priority tasks within a job."""
    arguments: Arguments = session.arguments("preempt")
    may_evict = arguments.may_evict(session)

    def accepts(task: Task, victim: Task) -> bool:
        """A best-effort task evicts best-effort tasks only."""
        return (victim.best_effort or not task.best_effort) and may_evict(task, victim)

    candidates = VictimCandidates(
        "preemptable",
        (Status.BOUND, Status.RUNNING),
        _is_other_job,
        accepts=accepts,
        key=_priorities,
        scope=session.queue_of,
        # Within a job, each task is served by itself, unless capacity for it alone is known to be of no use.
        one_by_one=not arguments.fewest_victims,
    )
    of_same_job = replace(candidates, may_take_from=_is_same_job, scope=lambda task: task.job)
    between_jobs = VictimSelection(session, candidates, arguments)
    within_job = VictimSelection(session, of_same_job, arguments)
    starving = starving_jobs(session, arguments.serves, between_jobs.may_help)
    for _, jobs in session.jobs_by_queue(starving).visits():
        visited = []
        for job in jobs:
            visited.append(job)
            evict_for_job(between_jobs, job, _serve)
        for job in visited:
            _preempt_within(within_job, job)


def _is_other_job(task: Task, job: Job) -> bool:
    return task.job is not None and job is not task.job and job.queue is task.job.queue


def _is_same_job(task: Task, job: Job) -> bool:
    """A group that may only be evicted as a whole does not evict its own tasks."""
    return job is task.job and not job.disrupted_as_group


def _priorities(task: Task) -> tuple[int, int]:
    return (task.job.priority if task.job is not None else 0, task.priority)


def _preempt_within(search: VictimSelection, job: Job) -> None:
    """Within a job, each task by itself; the first that finds no place ends it."""
    session, options = search.session, search.options
    if lost_pods_lately(session, job, options):
        return
    with session.guard(job):
        for task in pending_ungated(session, job):
            with session.statement() as trial:
                if not _serve(search, task, None):
                    return
                if options.fewest_victims and not session.rules.job_pipelined(job):
                    return  # a node for one task is of no use to a gang that cannot start with it
                commit_evictions(session, trial, options, job)


def _serve(search: VictimSelection, task: Task, within: Domain | None) -> bool:
    """Pipeline a task to a node that has capacity, else to one that is cleared of victims."""
    session = search.session
    arguments: Arguments = session.arguments("preempt")
    if not task.may_preempt or not arguments.has_waited(session, task):
        return False
    if arguments.fewest_victims and pipeline_without_eviction(session, task, within):
        return True
    if _waits_for_nominated_node(session, task):
        return False
    for part in search.searches(task, within):
        if arguments.topology_aware:
            cleared = _clear_best(part, arguments, task, within)
        else:
            nodes = part.nodes_by_score(task, within)
            cleared = clear_first(part, task, nodes, within)
        if cleared:
            return True
    return False


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


# -- topology-aware: comparing nodes by their victims


def _clear_best(search: VictimSelection, arguments: Arguments, task: Task, within: Domain | None) -> bool:
    """Of several nodes the one that loses least; one without victims wins at once (spec 02 6.4)."""
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
    return any(clear_node(search, task, node, choice, within) for node, choice in plans)


def _needed_victims(search: VictimSelection, task: Task, node: Node) -> Choice | None:
    """The victims that a node must lose for the task: evict until it fits, then restore those that it does not need."""
    session, choice = search.session, search.choose(task, node)
    if choice is None or not has_enough(session, task, node, choice.victims):
        return None
    with session.statement() as trial:
        for victim in choice.victims:
            if would_admit(session, task, node):
                break
            trial.evict(victim, EvictionReason(session.action))
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
