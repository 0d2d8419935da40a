"""A job, a pod, a queue or a node explained after a cycle, from the objects and the policy alone."""

from __future__ import annotations

import heapq
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

from stromboli.api import names
from stromboli.api.node_state import node_state
from stromboli.engine.explanation.diagnosis import first_waiting, waiting_count, waits
from stromboli.engine.explanation.quantities import amounts_text, quantities, quantity
from stromboli.engine.queue_limits import deserved_share, own_capability, own_limits
from stromboli.model.amounts import Amounts, excess
from stromboli.model.dimensions import PODS
from stromboli.model.status import WEIGHT
from stromboli.simulator.explain.explanation_document import (
    JobExplanation,
    NodeExplanation,
    NodeShare,
    PodCounts,
    QueueExplanation,
    QueueShare,
    Subject,
    WaitingJob,
)
from stromboli.simulator.explain.job_subject import job_explanation
from stromboli.simulator.explain.resource_holders import holding_jobs, holding_tasks

if TYPE_CHECKING:
    from stromboli.engine.cycle import Outcome
    from stromboli.engine.session import Session
    from stromboli.model.job import Job
    from stromboli.model.node_columns import Node
    from stromboli.model.queue import Queue
    from stromboli.model.task import Task
    from stromboli.simulator.explain.subject_lookup import Found
    from stromboli.simulator.explain.wait_clues import WaitClues


MAX_JOBS = 10
"""Jobs that each list of an explanation names."""
MAX_BORROWERS = 10
MAX_ASKED = 200
"""Waiting jobs, by priority and age, for which it is checked whether they fit on a node."""
_PRESSURES = ("MemoryPressure", "DiskPressure", "PIDPressure", "NetworkUnavailable")
_BARRING_EFFECTS = ("NoSchedule", "NoExecute")


def explain_found(outcome: Outcome, found: Found) -> tuple[Subject, WaitClues | None]:
    """Explain a subject before the cluster changes again, with clues to remedies for a waiting job."""
    if found.queue is not None:
        return queue_explanation(outcome, found.queue), None
    if found.node is not None:
        return node_explanation(outcome, found.node), None
    if found.job is not None:
        if found.kind == "Pod":
            return job_explanation(outcome, found.job, pod=found.task)
        return job_explanation(outcome, found.job, found.kind, found.name)
    assert found.task is not None
    return _lone_pod(outcome, found.task), None


def _lone_pod(outcome: Outcome, task: Task) -> JobExplanation:
    """A pod that belongs to no PodGroup, or to another scheduler."""
    why = outcome.explain_task(task)
    where = (
        f"is {task.status.title.lower()} on {task.node.name}"
        if task.node
        else f"waits: {why}"
        if why
        else "waits"
    )
    return JobExplanation(
        kind="Pod",
        name=task.name,
        namespace=task.namespace,
        pod_group="",
        queue="",
        state="runs" if task.node else "waits",
        pods=PodCounts(total=1, waiting=not task.node, running=bool(task.node)),
        summary=f"Pod {task.key} {where}",
        notes=[] if task.ours else ["It is assigned to another scheduler."],
        pod=task.name,
    )


# -- a queue: its state and shares, its waiting and running jobs, and the queues that borrow


def queue_explanation(outcome: Outcome, queue: Queue) -> QueueExplanation:
    """Explain a queue as it is after a cycle."""
    session = outcome.session
    waiting = sorted(
        (job for job in queue.jobs if waits(job)), key=lambda job: (-job.priority, job.created, job.key)
    )
    running = [task for job in queue.jobs for task in holding_tasks(job)]
    holding, total = holding_jobs(session.cluster, running, MAX_JOBS)
    state = "missing" if queue.object is None else queue.object.status.state or "Open"
    explained = QueueExplanation(
        kind="Queue",
        name=queue.name,
        state=state,
        parent=queue.parent,
        weight=queue.weight,
        reclaimable=queue.reclaimable,
        shares=_shares(session, queue),
        waiting=[_waiting(outcome, job) for job in waiting[:MAX_JOBS]],
        waiting_total=len(waiting),
        running=holding,
        running_total=total,
        borrowers=_borrowers(session, queue) if waiting else [],
    )
    if queue.object is not None:
        children = sorted(
            other.name for other in session.cluster.queues.values() if other.parent == queue.name
        )
        if children and queue.name != "root":
            explained.notes.append(f"Child queues: {', '.join(children[:MAX_JOBS])}.")
    explained.summary = _summary(explained)
    return explained


def used_of(session: Session, queue: Queue) -> Amounts:
    """What a queue uses, with its descendants where the policy has a tree of queues."""
    below = (other for other in session.cluster.queues.values() if other.parent == queue.name)
    for child in below:
        for limit in session.rules.queue_limits(child):
            if limit.queue is queue:
                return limit.held
    return queue.allocated


def _shares(session: Session, queue: Queue) -> list[QueueShare]:
    cluster = session.cluster
    used, deserved = used_of(session, queue), deserved_share(queue, own_limits(session, queue))
    capability = own_capability(queue)
    named = {
        dim for amounts in (used, deserved, capability, queue.guarantee, queue.pending) for dim in amounts
    }
    named |= {0, 1}
    borrowed = excess(used, deserved) if deserved else {}

    def text(amounts: Mapping[int, float], dim: int) -> str:
        return quantities(cluster, amounts, [dim]).get(cluster.dims.names[dim], "")

    return [
        QueueShare(
            resource=cluster.dims.names[dim],
            used=quantity(cluster, dim, used.get(dim, 0)),
            deserved=text(deserved, dim),
            guarantee=text(queue.guarantee, dim),
            capability=text(capability, dim),
            waiting=text(queue.pending, dim) if queue.pending.get(dim) else "",
            borrowed=text(borrowed, dim) if borrowed.get(dim) else "",
        )
        for dim in cluster.dims.ordered(named)
        if dim != PODS
    ]


def _waiting(outcome: Outcome, job: Job) -> WaitingJob:
    wait = outcome.explain(job)
    asked = quantities(outcome.session.cluster, job.pending)
    return WaitingJob(job.key, waiting_count(job), asked, wait.message if wait else "")


def _borrowers(session: Session, queue: Queue) -> list[str]:
    """Other queues that use more than they deserve, the largest borrowers first."""
    total, borrowing = session.cluster.total, []
    for other in session.cluster.queues.values():
        if other is queue or not other.exists or other.name == "root":
            continue
        deserved = deserved_share(other, own_limits(session, other))
        beyond = {
            dim: amount
            for dim, amount in excess(other.allocated, deserved).items()
            if amount > 0 and dim != PODS
        }
        if deserved and beyond:
            share = sum(amount / max(total.get(dim, 0), 1) for dim, amount in beyond.items())
            listed = amounts_text(session.cluster.dims, beyond)
            fixed = "" if other.reclaimable else ", and is not reclaimable"
            borrowing.append(
                (share, other.name, f"{other.name} uses {listed} above its deserved share{fixed}")
            )
    return [text for *_, text in heapq.nlargest(MAX_BORROWERS, borrowing)]


def _summary(explained: QueueExplanation) -> str:
    running, waiting = explained.running_total, explained.waiting_total
    hold, wait = (
        "1 job holds" if running == 1 else f"{running} jobs hold",
        "waits" if waiting == 1 else "wait",
    )
    jobs = f"{hold} resources, {waiting} {wait}"
    return f"Queue {explained.name} is {explained.state.lower()}: {jobs}"


# -- a node: its resources, its jobs, the jobs that would fit, and what keeps pods off


def node_explanation(outcome: Outcome, node: Node) -> NodeExplanation:
    """Explain a node as it is after a cycle."""
    session = outcome.session
    holding = [task for task in node.tasks if WEIGHT[task.status].used]
    running, total = holding_jobs(session.cluster, holding, MAX_JOBS)
    state = node_state(node.object) if node.object is not None else "missing"
    explained = NodeExplanation(
        kind="Node",
        name=node.name,
        state=state,
        takes_nobody=_reasons_without_new_pods(node),
        taints=_taints(node),
        hyper_nodes=_hyper_nodes(session, node),
        shares=_node_shares(session, node),
        running=running,
        running_total=total,
        could_fit=_could_fit(session, node) if node.row >= 0 else [],
    )
    explained.summary = _node_summary(explained, len(holding))
    return explained


def _reasons_without_new_pods(node: Node) -> list[str]:
    """Why no new pods are placed on a node, or only some."""
    if node.object is None:
        return ["no Node object with this name exists"]
    spec, conditions = node.object.spec, node.object.status.conditions
    reasons = (
        ["it is cordoned (spec.unschedulable): run kubectl uncordon to allow new pods"]
        if spec.unschedulable
        else []
    )
    for condition in conditions:
        if condition.type == names.CONDITION_READY and condition.status != "True":
            reasons.append(f"it is not ready: {condition.reason or condition.status}")
        elif condition.type in _PRESSURES and condition.status == "True":
            reasons.append(f"it reports {condition.type}")
    taints = _taints(node, _BARRING_EFFECTS)
    if taints:
        reasons.append(f"it accepts only pods that tolerate {', '.join(taints)}")
    return reasons


def _taints(node: Node, effects: Collection[str] = ()) -> list[str]:
    """The taints of a node as `key=value:effect`; only those with the given effects, if any are given."""
    return [
        f"{taint.key}{f'={taint.value}' if taint.value else ''}:{taint.effect}"
        for taint in (node.object.spec.taints if node.object else ())
        if not effects or taint.effect in effects
    ]


def _hyper_nodes(session: Session, node: Node) -> list[str]:
    tree = session.cluster.hyper_nodes
    if not tree or node.row < 0:
        return []
    domains = tree.containing([node.row])
    return [f"{domain.title} (tier {domain.tier})" for domain in domains if domain is not tree.top]


def _node_shares(session: Session, node: Node) -> list[NodeShare]:
    cluster, columns = session.cluster, session.cluster.columns
    if node.row < 0:
        return []
    used, idle = columns.used[:, node.row], columns.idle[:, node.row]
    leaving, promised = columns.releasing[:, node.row], columns.pipelined[:, node.row]
    return [
        NodeShare(
            resource=cluster.dims.names[dim],
            allocatable=quantity(cluster, dim, columns.allocatable[dim, node.row]),
            used=quantity(cluster, dim, used[dim]),
            free=quantity(cluster, dim, max(int(idle[dim]), 0)),
            coming_free=quantity(cluster, dim, leaving[dim]) if leaving[dim] else "",
            promised=quantity(cluster, dim, promised[dim]) if promised[dim] else "",
        )
        for dim in cluster.dims.ordered(range(len(cluster.dims)))
        if columns.allocatable[dim, node.row] or used[dim]
    ]


def _could_fit(session: Session, node: Node) -> list[WaitingJob]:
    """The most urgent waiting jobs whose first pod fits on a node now, the largest first."""
    jobs = [job for job in session.cluster.backlog if job.visible]
    urgent = heapq.nsmallest(MAX_ASKED, jobs, key=lambda job: (-job.priority, job.created, job.key))
    fitting: list[tuple[float, Job]] = []
    admitted: dict[object, bool] = {}
    for job in urgent:
        task = first_waiting(job)
        if task is None or task.gates:
            continue
        if task.shape not in admitted:
            admitted[task.shape] = _fits_now(session, task, node)
        if admitted[task.shape]:
            fitting.append((_size(session, task), job))
    fitting.sort(key=lambda entry: (-entry[0], entry[1].key))
    return [_fitting(session, job) for _, job in fitting[:MAX_JOBS]]


def _fits_now(session: Session, task: Task, node: Node) -> bool:
    """Whether a task fits into what a node has free, and passes all filters there."""
    idle = session.cluster.columns.idle[:, node.row]
    if any(amount > idle[dim] for dim, amount in task.request.items() if amount > 0):
        return False
    admits = False
    with session.reporting():
        reachable = bool(session.reachable(task, confined=False)[node.row])
        admits = reachable and not session.evaluation(task).is_filtered(node.row)
    return admits


def _size(session: Session, task: Task) -> float:
    total = session.cluster.total
    return sum(amount / max(total.get(dim, 0), 1) for dim, amount in task.request.items() if dim != PODS)


def _fitting(session: Session, job: Job) -> WaitingJob:
    task = first_waiting(job)
    asked = quantities(session.cluster, task.request) if task else {}
    needed = max(job.minimum - job.ready_count, 1)
    text = f"each pod; {needed} must start together" if needed > 1 else ""
    return WaitingJob(job.key, waiting_count(job), asked, text)


def _node_summary(explained: NodeExplanation, pods: int) -> str:
    state = "has no Ready condition" if explained.state == "Unknown" else f"is {explained.state}"
    jobs = "1 job" if explained.running_total == 1 else f"{explained.running_total} jobs"
    on_it = f"it runs 1 pod of {jobs}" if pods == 1 else f"it runs {pods} pods of {jobs}"
    head = f"Node {explained.name} {state}: {on_it if pods else 'it runs no pods'}"
    return f"{head}; {explained.takes_nobody[0]}" if explained.takes_nobody else head
