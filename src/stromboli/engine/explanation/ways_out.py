"""The next step for a job that waits: concrete amounts, labels and taints instead of good advice."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from stromboli.engine.explanation.shortages import (
    WayOut,
    amount_text,
    amounts_text,
    largest_holders,
    shortage,
)
from stromboli.engine.job_needs import SelectedNodeSizes
from stromboli.model.amounts import Amounts
from stromboli.model.cluster import Cluster
from stromboli.model.constraints.node_selection import matching_nodes, selects_nodes
from stromboli.model.dimensions import PODS
from stromboli.model.job import Job
from stromboli.model.status import Status
from stromboli.model.task import Task

if TYPE_CHECKING:
    from stromboli.engine.placement.verdict import Reason
    from stromboli.engine.session import Session

LESS_OR_NODES = "add nodes or request less"
_POD_LIMIT = "every node is at its pod limit: wait or add nodes"


def nodes_way_out(session: Session, task: Task, reason: Reason) -> WayOut:
    """What would let a task find a node, given why it found none."""
    if reason.dim is not None and reason.dim != PODS:
        return larger_than_any_node(session.cluster, task) or _free_way_out(session, task, reason.dim)
    return WayOut(reason.remedy.current_text(task) or way_past_filter(task, reason))


def way_past_filter(task: Task, reason: Reason) -> str:
    """What would make a filter admit a task to a node; empty if the filter does not say."""
    return _POD_LIMIT if reason.dim == PODS else reason.remedy.steady_text(task)


def minimum_field(job: Job) -> str:
    """Where a group says how many of its pods start together; a native one cannot be changed, only made anew."""
    return "spec.minMember" if job.native is None else "schedulingPolicy.gang.minCount in a new PodGroup"


def missing_pods_way_out(job: Job, missing: int = 0) -> str:
    """What a gang with too few pods needs; without a number it is the same while its pods are created."""
    pods = f"{missing} more pod{'s' if missing > 1 else ''}" if missing else "the missing pods"
    return f"create {pods} or lower {minimum_field(job)}"


def enqueue_way_out(session: Session, job: Job, known: str) -> WayOut:
    """What enqueue compares: what the job asks for and what is free; and the way out, if whoever refused it knows."""
    cluster, wanted = session.cluster, session.needs.least(job) or {}
    if not wanted:
        return WayOut(known)
    source = "its pods" if job.min_resources is None else "spec.minResources"
    free = cluster.columns.free
    short = {dim: amount for dim, amount in wanted.items() if amount > free.get(dim, 0)}
    asked = amounts_text(cluster.dims, short or wanted)
    left = amounts_text(cluster.dims, {dim: free.get(dim, 0) for dim in short or wanted})
    taken = (
        "" if short else ", so it is blocked by jobs admitted earlier or by a limit of its queue or namespace"
    )
    next_step = f"; {known}" if known else taken
    return WayOut(
        f"it requests {asked} ({source}), the cluster has {left} free{next_step}",
        tuple(shortage(cluster.dims, dim, amount, free.get(dim, 0)) for dim, amount in short.items()),
        largest_holders(cluster, short),
    )


def larger_than_any_node(cluster: Cluster, task: Task) -> WayOut | None:
    """What a task asks for that no node which it selects has, even an empty one: of one resource or of all at once."""
    columns, dims, selects = cluster.columns, cluster.dims, selects_nodes(task.shape.spec)
    rows = np.flatnonzero(matching_nodes(columns, task.shape.spec))
    if not len(rows):
        return None
    allocatable = columns.allocatable[:, rows]
    most = {dim: int(allocatable[dim].max()) for dim in dims.ordered(task.request) if dim != PODS}
    short = {dim: size for dim, size in most.items() if task.request[dim] > size}
    if not short and columns.derived(SelectedNodeSizes).slots(task.shape):
        return None
    selected = " that it selects" if selects else ""
    if not short:
        asked = amounts_text(dims, {dim: amount for dim, amount in task.request.items() if amount > 0})
        return WayOut(f"{task.name} requests {asked}, and no node{selected} has all of these")
    asked = amounts_text(dims, {dim: task.request[dim] for dim in short})
    if len(short) == 1:
        ((dim, size),) = short.items()
        node = columns.nodes[rows[int(allocatable[dim].argmax())]].name
        largest = f"the largest node{selected} ({node})"
        text = f"{task.name} requests {asked}, {largest} has {amount_text(dims, dim, size)}"
    else:
        text = f"{task.name} requests {asked}, the most on one node{selected} is {amounts_text(dims, short)}"
    return WayOut(text, tuple(shortage(dims, dim, task.request[dim], size) for dim, size in short.items()))


def selects_no_node(cluster: Cluster, task: Task) -> bool:
    """Whether no node has the labels that a task asks for."""
    spec = task.shape.spec
    return selects_nodes(spec) and not matching_nodes(cluster.columns, spec).any()


def _free_way_out(session: Session, task: Task, dim: int) -> WayOut:
    """How much a task asks for, and the most that one node had free when the actions had run."""
    cluster, uncommitted = session.cluster, session.uncommitted
    dims, idle = cluster.dims, (cluster.columns.idle if uncommitted.idle is None else uncommitted.idle)[dim]
    request = task.request.get(dim, 0)
    asked = amount_text(dims, dim, request)
    if not len(idle):
        return WayOut(
            f"it requests {asked}, and the cluster has no nodes", (shortage(dims, dim, request, 0),)
        )
    row = int(idle.argmax())
    if idle[row] >= request:
        return _gang_way_out(session, task, dim, idle)
    left, node = max(int(idle[row]), 0), cluster.columns.nodes[row].name
    free = amount_text(dims, dim, left)
    text = f"each pod requests {asked}; at most {free} is free on one node ({node})"
    return WayOut(text, (shortage(dims, dim, request, left),), largest_holders(cluster, (dim,)))


def _gang_way_out(session: Session, task: Task, dim: int, idle: NDArray[np.int64]) -> WayOut:
    """Single pods would fit, but not all that must start together."""
    cluster, job = session.cluster, task.job
    if job is None:
        return WayOut()
    left = int(idle.clip(min=0).sum())
    wanted = job.pending.get(dim, 0)
    asked, free = amount_text(cluster.dims, dim, wanted), amount_text(cluster.dims, dim, left)
    fit, waiting = had_room(session, job), job.counts[Status.PENDING]
    smallest = min(pending.request.get(dim, 0) for pending in job.by_status[Status.PENDING])
    if smallest > 0:  # others may have taken room since then
        fit = min(fit, int((idle.clip(min=0) // smallest).sum()))
    scattered = " but fragmented" if wanted <= left else ""
    text = f"{fit} of {waiting} pods fit: they request {asked} in total; {free} is free{scattered}"
    return WayOut(text, (shortage(cluster.dims, dim, wanted, left),), largest_holders(cluster, (dim,)))


def exceeds_cluster(session: Session, job: Job) -> list[int]:
    """Resources of which the pods that must start together ask for more than all nodes have."""
    if job.has_started and not session.needs.is_hopeless(job):
        return []  # pods that run stay on nodes that shrank or were removed
    total = session.total
    return [dim for dim, amount in least_request(job).items() if dim != PODS and amount > total.get(dim, 0)]


def least_request(job: Job) -> Amounts:
    """What the pods that must start together ask for, as far as that is known."""
    whole = job.tasks and job.minimum >= len(job.tasks) and not job.waits_for_queue
    return job.total if whole else (job.min_resources or {})


def had_room(session: Session, job: Job) -> int:
    """How many of the pods that wait had room when they were last tried, whatever was tried after that in vain."""
    return min(session.had_room.get(job, 0), job.counts[Status.PENDING])
