"""Let urgent jobs take the places of lesser ones in their queue, and tasks those of others in their job (spec 02 6)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from stromboli.api import names
from stromboli.engine.catalog import action
from stromboli.engine.eviction.eviction_options import Manners, settle_in, welcome
from stromboli.engine.eviction.node_clearing import clear
from stromboli.engine.eviction.starving_jobs import feed, rests, seal, starving_jobs, wanting
from stromboli.engine.eviction.victim_search import Hunt, Offer, enough
from stromboli.engine.points import Choice
from stromboli.engine.session import Session
from stromboli.engine.statement import Statement
from stromboli.engine.transaction import EvictionReason
from stromboli.model.job import Job
from stromboli.model.node_columns import Node
from stromboli.model.status import Status
from stromboli.model.task import Task
from stromboli.policy.accepted_arguments import error_cache
from stromboli.policy.arguments import arg


@dataclass(frozen=True, slots=True)
class Arguments(Manners):
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
    fewest_candidates: int = arg("minCandidateNodesAbsolute", 1, "How many nodes to compare at least.")
    most_candidates: int = arg("maxCandidateNodesAbsolute", 100, "How many nodes to compare at most.")


@action("preempt", Arguments)
def preempt(session: Session) -> None:
    """Per queue: job against job first, then, within each job that starved, task against task."""
    arguments: Arguments = session.arguments("preempt")

    def accepts(task: Task, victim: Task) -> bool:
        return _not_above_best_effort(task, victim) and arguments.lets_go(session, victim)

    def hunt(from_job: Callable[[Task, Job], bool]) -> Hunt:
        offer = Offer("preemptable", (Status.BOUND, Status.RUNNING), from_job, accepts)
        return Hunt(session, offer, arguments.fewest_victims, arguments.no_harm)

    between, within = hunt(_of_another_job), hunt(_of_the_same_job)
    hungry = [job for job in starving_jobs(session) if not _bound_to_topology(job)]
    for _, jobs in session.jobs_by_queue(hungry).visits():
        served = []
        for job in jobs:
            served.append(job)
            feed(session, job, partial(_make_room, session, between, arguments), arguments)
        for job in served:
            _rearrange(session, within, arguments, job)


def _of_another_job(task: Task, job: Job) -> bool:
    return task.job is not None and job is not task.job and job.queue is task.job.queue


def _of_the_same_job(task: Task, job: Job) -> bool:
    """A group that may only be disturbed as a whole does not disturb itself."""
    return job is task.job and not job.goes_whole


def _not_above_best_effort(task: Task, victim: Task) -> bool:
    """A best-effort task takes nobody's place but that of its like."""
    return victim.best_effort or not task.best_effort


def _bound_to_topology(job: Job) -> bool:
    group = job.group
    return group is not None and (
        group.spec.network_topology is not None
        or any(policy.network_topology is not None for policy in job.policies)
    )


def _rearrange(session: Session, hunt: Hunt, arguments: Arguments, job: Job) -> None:
    """Within a job, each task by itself; the first that finds no place ends it."""
    if rests(session, job, arguments):
        return
    with session.guard(job):
        for task in wanting(session, job):
            with session.statement() as trial:
                if not _make_room(session, hunt, arguments, trial, task):
                    return
                if arguments.fewest_victims and not session.rules.job_pipelined(job):
                    return  # room for one is of no use to a gang that cannot start with it
                seal(session, trial, arguments)


def _make_room(session: Session, hunt: Hunt, arguments: Arguments, trial: Statement, task: Task) -> bool:
    if not task.may_preempt:
        return False
    if arguments.fewest_victims and settle_in(session, trial, task):
        return True
    if _has_its_node(session, task) or hunt.hopeless(task):
        return False
    for step in hunt.steps(task):
        if arguments.topology_aware:
            found = _take_the_best(session, step, arguments, task)
        else:
            found = any(_take(session, step, arguments, task, node) for node in step.nodes_by_score(task))
        if found:
            return True
    hunt.give_up(task)
    return False


def _has_its_node(session: Session, task: Task) -> bool:
    """Whether the node that was cleared for a task lets it in or is about to be free; if so, it need not try again."""
    if not task.nominated:
        return False
    node = session.cluster.nodes.get(task.nominated)
    if node is None or node.row < 0 or session.admits(task, node):
        return True
    return bool(session.reachable(task)[node.row]) and any(
        other.leaves_for_another and other.pod_priority < task.pod_priority for other in node.tasks
    )


def _take(session: Session, hunt: Hunt, arguments: Arguments, task: Task, node: Node) -> bool:
    """Evict on one node until the task is let in."""
    choice = hunt.choose(task, node) or Choice([])
    if not enough(session, task, node, choice.victims):
        return False
    return clear(session, hunt, arguments, names.EVICTED_BY_PREEMPT, task, node, choice, welcome)


# -- comparing nodes by whom they would lose


def _take_the_best(session: Session, hunt: Hunt, arguments: Arguments, task: Task) -> bool:
    """Of several nodes the one that loses least; one that loses nobody wins at once (spec 02 6.4)."""
    nodes = list(hunt.nodes_in_order(task))
    share = len(session.cluster.columns) * arguments.candidate_percentage // 100
    wanted = min(arguments.most_candidates, max(arguments.fewest_candidates, share))
    plans: list[tuple[Node, Choice]] = []
    for node in nodes:
        choice = _least_loss(session, hunt, task, node)
        if choice is not None:
            plans.append((node, choice))
            if not choice.victims or len(plans) == wanted:
                break
    plans.sort(key=lambda plan: _loss(session, plan[1].victims))
    return any(
        clear(session, hunt, arguments, names.EVICTED_BY_PREEMPT, task, node, choice, welcome)
        for node, choice in plans
    )


def _least_loss(session: Session, hunt: Hunt, task: Task, node: Node) -> Choice | None:
    """Whom a node must lose for the task: remove until it fits, then let back in who need not go."""
    choice = hunt.choose(task, node) or Choice([])
    if not enough(session, task, node, choice.victims):
        return None
    removed: list[Task] = []
    with session.statement() as look:
        for victim in choice.victims:
            if welcome(session, task, node):
                break
            if look.evict(victim, EvictionReason(names.EVICTED_BY_PREEMPT)) is None:
                removed.append(victim)
        if not welcome(session, task, node):
            return None
        needed = [victim for victim in reversed(removed) if not _can_stay(session, look, task, node, victim)]
    return choice._replace(victims=[victim for victim in removed if victim in needed])


def _can_stay(session: Session, look: Statement, task: Task, node: Node, victim: Task) -> bool:
    status = look.status_before(victim)
    note = session.eviction_of(victim)
    look.restore(victim, status)
    if welcome(session, task, node):
        return True
    look.evict(victim, note)
    return False


def _loss(session: Session, victims: list[Task]) -> tuple[float, ...]:
    """Smaller is better: priority of who goes last, sum of priorities, number, then the latest start of the highest."""
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
