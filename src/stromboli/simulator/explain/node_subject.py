"""A node explained after a cycle: its resources, its jobs, the jobs that would fit, and what keeps pods away."""

from __future__ import annotations

import heapq
from collections.abc import Collection
from typing import TYPE_CHECKING

from stromboli.api import names
from stromboli.api.node_state import node_state
from stromboli.engine.explanation.diagnosis import first_waiting, waiting_count
from stromboli.engine.explanation.quantities import quantities, quantity
from stromboli.model.dimensions import PODS
from stromboli.model.status import WEIGHT
from stromboli.simulator.explain.explanation_document import NodeExplanation, NodeShare, WaitingJob
from stromboli.simulator.explain.resource_holders import holding_jobs

if TYPE_CHECKING:
    from stromboli.engine.cycle import Outcome
    from stromboli.engine.session import Session
    from stromboli.model.job import Job
    from stromboli.model.node_columns import Node
    from stromboli.model.task import Task

MOST_JOBS = 10
MOST_ASKED = 200
"""Waiting jobs that are checked for whether they fit, the most urgent first."""
_PRESSURES = ("MemoryPressure", "DiskPressure", "PIDPressure", "NetworkUnavailable")
_KEEPS_OUT = ("NoSchedule", "NoExecute")


def node_explanation(outcome: Outcome, node: Node) -> NodeExplanation:
    """Explain a node as it is after a cycle, to be asked before the cluster changes again."""
    session = outcome.session
    holding = [task for task in node.tasks if WEIGHT[task.status].used]
    running, total = holding_jobs(session.cluster, holding, MOST_JOBS)
    state = node_state(node.object) if node.object is not None else "missing"
    explained = NodeExplanation(
        kind="Node",
        name=node.name,
        state=state,
        takes_nobody=_objections(node),
        taints=_taints(node),
        hyper_nodes=_hyper_nodes(session, node),
        shares=_shares(session, node),
        running=running,
        running_total=total,
        could_fit=_could_fit(session, node) if node.row >= 0 else [],
    )
    explained.summary = _summary(explained, len(holding))
    return explained


def _objections(node: Node) -> list[str]:
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
    taints = _taints(node, _KEEPS_OUT)
    if taints:
        reasons.append(f"it accepts only pods that tolerate {', '.join(taints)}")
    return reasons


def _taints(node: Node, effects: Collection[str] = ()) -> list[str]:
    """Its taints, `key=value:effect`; only those of some effects, if any are given."""
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


def _shares(session: Session, node: Node) -> list[NodeShare]:
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
    """Of the most urgent jobs that wait, those of which the first pod fits here now, the largest first."""
    jobs = [job for job in session.cluster.backlog if job.visible]
    urgent = heapq.nsmallest(MOST_ASKED, jobs, key=lambda job: (-job.priority, job.created, job.key))
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
    return [_waiting(session, job) for _, job in fitting[:MOST_JOBS]]


def _fits_now(session: Session, task: Task, node: Node) -> bool:
    """Whether there is room for it as things stand, and no filter keeps it out."""
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


def _waiting(session: Session, job: Job) -> WaitingJob:
    task = first_waiting(job)
    asked = quantities(session.cluster, task.request) if task else {}
    needed = max(job.minimum - job.ready_count, 1)
    text = f"each pod; {needed} must start together" if needed > 1 else ""
    return WaitingJob(job.key, waiting_count(job), asked, text)


def _summary(explained: NodeExplanation, pods: int) -> str:
    state = "has no Ready condition" if explained.state == "Unknown" else f"is {explained.state}"
    jobs = "1 job" if explained.running_total == 1 else f"{explained.running_total} jobs"
    on_it = f"it runs 1 pod of {jobs}" if pods == 1 else f"it runs {pods} pods of {jobs}"
    head = f"Node {explained.name} {state}: {on_it if pods else 'it runs no pods'}"
    return f"{head}; {explained.takes_nobody[0]}" if explained.takes_nobody else head
