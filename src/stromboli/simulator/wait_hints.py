"""The next step for a job that waits: concrete amounts, labels and taints instead of good advice."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from stromboli.api import names
from stromboli.api.resources.resource_lists import resource_list
from stromboli.engine.cycle import Outcome
from stromboli.engine.session import Session
from stromboli.model.cluster import Cluster
from stromboli.model.dimensions import PODS, Dimensions
from stromboli.model.job import Job
from stromboli.model.status import Status
from stromboli.model.task import Task

MANY = 3
_STORAGE_MISSING = '" not found'
"""How messages about a missing claim, volume or class end."""

_PLAIN = {
    names.NODE_UNSCHEDULABLE: "kubectl uncordon one of the nodes",
    names.POD_NUMBER_EXCEEDED: "every node has its full number of pods: wait, add nodes or raise their limit",
    names.INSUFFICIENT.format(names.PODS): "every node has its full number of pods: wait or add nodes",
    names.PORTS_TAKEN: "another pod has the host port on every node: choose another port",
    names.POD_AFFINITY_MISMATCH: "no node is near the pods that its podAffinity asks for",
    names.POD_ANTI_AFFINITY_MISMATCH: "its podAntiAffinity keeps it from every node: add nodes or relax the rule",
    names.EXISTING_ANTI_AFFINITY: "pods that run already keep it away by their podAntiAffinity",
    names.SPREAD_MISMATCH: "its topologySpreadConstraints forbid every node: add nodes or raise maxSkew",
    names.SPREAD_MISSING_LABEL: "label the nodes with the topologyKey of its topologySpreadConstraints",
}


def verdict_hint(outcome: Outcome, task: Task, reason: str) -> str:
    """What would let a task find a node, given why it found none."""
    if reason in _PLAIN:
        return _PLAIN[reason]
    cluster = outcome.session.cluster
    for dim in task.dims:
        if reason == names.INSUFFICIENT.format(cluster.dims.names[dim]):
            return too_large(cluster, task) or _shortage(outcome, task, dim)
    if reason == names.UNTOLERATED_TAINT:
        return _taints(cluster)
    if reason == names.NODE_AFFINITY_MISMATCH:
        return _selector(task)
    if reason.endswith(_STORAGE_MISSING):
        return "create it, or add it to the files: kubectl get -A -o yaml pvc,pv,storageclasses"
    return ""


def objection_hint(job: Job, text: str) -> str:
    """What would make a job valid."""
    if text.startswith("plugin "):
        return "mend the plugin or take it out of the policy"
    missing = job.minimum - job.valid_count
    return f"create {missing} more pods or lower {minimum_field(job)}" if missing > 0 else ""


def minimum_field(job: Job) -> str:
    """Where a group says how many of its pods start together; a native one cannot be changed, only made anew."""
    return "spec.minMember" if job.native is None else "schedulingPolicy.gang.minCount in a new PodGroup"


def gate_hint(cluster: Cluster, job: Job) -> str:
    """What the gate of a queue compares: what the job asks for and what is free."""
    wanted = job.min_resources or {}
    if not wanted:
        return ""
    free = cluster.columns.total(cluster.columns.idle)
    short = {dim: amount for dim, amount in wanted.items() if amount > free.get(dim, 0)}
    asked = amounts_text(cluster.dims, short or wanted)
    left = amounts_text(cluster.dims, {dim: free.get(dim, 0) for dim in short or wanted})
    taken = "" if short else ", so jobs let in before it or a limit of its queue or namespace hold it back"
    return f"it asks for {asked} (spec.minResources), the cluster has {left} free{taken}"


def too_large(cluster: Cluster, task: Task) -> str:
    """Whether a task asks for more than any node has, even an empty one."""
    columns = cluster.columns
    for dim in cluster.dims.ordered(task.request):
        sizes, asked = columns.allocatable[dim], task.request[dim]
        if len(sizes) and asked > sizes.max():
            largest = _amount_text(cluster.dims, dim, int(sizes.max()))
            where = columns.nodes[int(sizes.argmax())].name
            wanted = _amount_text(cluster.dims, dim, asked)
            return f"{task.name} asks for {wanted}, the largest node ({where}) has {largest}"
    return ""


def amounts_text(dims: Dimensions, amounts: Mapping[int, float]) -> str:
    """`cpu 4, memory 8Gi`."""
    return ", ".join(_amount_text(dims, dim, amounts[dim]) for dim in dims.ordered(amounts) if dim != PODS)


def _amount_text(dims: Dimensions, dim: int, amount: float) -> str:
    name = dims.names[dim]
    return f"{name} {resource_list({name: int(amount)})[name]}"


def _shortage(outcome: Outcome, task: Task, dim: int) -> str:
    """How much a task asks for, and the most that one node had free when the actions had run."""
    cluster = outcome.session.cluster
    dims, idle = cluster.dims, (cluster.columns.idle if outcome.idle is None else outcome.idle)[dim]
    asked = _amount_text(dims, dim, task.request.get(dim, 0))
    if not len(idle):
        return f"it asks for {asked}, and there is no node"
    row = int(idle.argmax())
    if idle[row] < task.request.get(dim, 0):
        free = _amount_text(dims, dim, max(int(idle[row]), 0))
        where = cluster.columns.nodes[row].name
        return f"each pod asks for {asked}; the largest free amount on one node is {free} ({where})"
    return _gang_shortage(outcome.session, task, dim, idle)


def _gang_shortage(session: Session, task: Task, dim: int, idle: NDArray[np.int64]) -> str:
    """Single pods would fit, but not all that must start together."""
    cluster, job = session.cluster, task.job
    if job is None:
        return ""
    left = int(idle.clip(min=0).sum())
    wanted = job.pending.get(dim, 0)
    asked, free = _amount_text(cluster.dims, dim, wanted), _amount_text(cluster.dims, dim, left)
    fit, waiting = had_room(session, job), job.counts[Status.PENDING]
    smallest = min(one.request.get(dim, 0) for one in job.by_status[Status.PENDING])
    if smallest > 0:  # others may have taken room since then
        fit = min(fit, int((idle.clip(min=0) // smallest).sum()))
    scattered = ", but in pieces too small" if wanted <= left else ""
    return f"{fit} of {waiting} pods would fit: together they ask for {asked}, {free} is free{scattered}"


def had_room(session: Session, job: Job) -> int:
    """How many of the pods that wait had room when they were last tried, whatever was tried after that in vain."""
    return min(session.had_room.get(job, 0), job.counts[Status.PENDING])


def _taints(cluster: Cluster) -> str:
    found: dict[str, None] = {}
    for node in cluster.columns.nodes:
        for taint in node.object.spec.taints if node.object else ():
            if taint.effect != names.PREFER_NO_SCHEDULE:
                value = f"={taint.value}" if taint.value else ""
                found[f"{taint.key}{value}:{taint.effect}"] = None
        if len(found) > MANY:
            break
    listed = ", ".join(list(found)[:MANY])
    return f"tolerate a taint or remove it: {listed}{', ...' if len(found) > MANY else ''}"


def _selector(task: Task) -> str:
    selector = task.shape.spec.node_selector
    if selector:
        labels = ", ".join(f"{key}={value}" for key, value in sorted(selector.items()))
        return f"label a node with {labels}, or change the pod's nodeSelector"
    return "no node has the labels that its node affinity asks for"
