"""What a pod with ResourceClaims lacks: which request finds no devices, on how many nodes, and why."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from stromboli.api import device_messages as messages
from stromboli.model.devices.allocator import DevicesInUse, Shortage, StepBudget
from stromboli.model.devices.claim_plan import device_classes
from stromboli.model.devices.task_claims import task_claims
from stromboli.model.status import Status

if TYPE_CHECKING:
    from stromboli.model.cluster import Cluster
    from stromboli.model.devices.allocator import ClaimSearch
    from stromboli.model.devices.claim_use import ClaimUse
    from stromboli.model.job import Job
    from stromboli.model.task import Task

SHOWN = 2
"""Shortages that are told, the one of the most nodes first."""
STEPS = 20_000
"""Steps of the search for what is short; nodes that are left then are not told of."""
_WAYS = (
    (
        "ResourceClaim not created yet",
        "create the ResourceClaimTemplate that it names: its claim is made of it",
    ),
    ("could not find ResourceClaim", "create the ResourceClaim"),
    ("device class", "create the DeviceClass, or ask for one that exists: kubectl get deviceclasses"),
    ("CEL", "mend the selector of the claim or of its class: stromboli lint checks it"),
    (messages.IN_USE, "wait until another pod is done with the claim, or use a claim of its own"),
)
PODS_TRIED = 32
"""Pods of a gang that are given devices in turn, to see how many of them find some."""


def way_to_devices(cluster: Cluster, task: Task, reason: str) -> str:
    """What would let a task have the devices that it claims; empty for a reason that is none of claims."""
    if reason == messages.CANNOT_ALLOCATE and (classes := _classes(_unallocated(cluster, task))):
        return f"wait until devices of class {classes} are free, ask for others, or add nodes that have them"
    if reason == messages.NOT_AVAILABLE:
        return "a claim of it has devices that other nodes cannot reach: make room where they are"
    return next((way_out for words, way_out in _WAYS if words in reason), "")


def devices_in_numbers(cluster: Cluster, task: Task, reason: str) -> str:
    """The same with what is short, and on how many nodes."""
    way_out = way_to_devices(cluster, task, reason)
    uses = _unallocated(cluster, task)
    if reason != messages.CANNOT_ALLOCATE or not uses:
        return way_out
    numbers = _by_nodes(cluster, uses) or (_of_gang(cluster, task.job) if task.job is not None else "")
    return f"{numbers}: {way_out}" if numbers else way_out


def _unallocated(cluster: Cluster, task: Task) -> list[ClaimUse]:
    return [use for use in task_claims(cluster.devices, task) if use.allocation is None and use.content]


def _classes(uses: list[ClaimUse]) -> str:
    classes = device_classes(*(use.content.spec for use in uses if use.content is not None))
    return " or ".join(list(classes)[:SHOWN])


def _search(cluster: Cluster, uses: list[ClaimUse]) -> ClaimSearch:
    return cluster.devices.allocator.prepare([use.content.spec for use in uses if use.content is not None])


def _by_nodes(cluster: Cluster, uses: list[ClaimUse]) -> str:
    """What is short node by node; empty if some node has it all."""
    search, budget, counts = _search(cluster, uses), StepBudget(STEPS), Counter[str]()
    for node in cluster.columns.nodes:
        answer = search.answer(node, cluster.devices.in_use, budget)
        if budget.is_exceeded:
            break
        if not isinstance(answer, Shortage):
            return ""
        counts[answer.message] += 1
    return "; ".join(f"on {_nodes(count)} {text}" for text, count in counts.most_common(SHOWN))


def _of_gang(cluster: Cluster, job: Job) -> str:
    """How many pods of a gang find devices one after the other, where each of them would by itself."""
    given, budget, served = DevicesInUse(), StepBudget(STEPS), 0
    for use in cluster.devices.claims.values():
        if use.allocation is not None:
            given.add(use.allocation)
    waiting = [task for task in job.by_status[Status.PENDING] if task.claims][:PODS_TRIED]
    for task in waiting:
        uses = _unallocated(cluster, task)
        for node in cluster.columns.nodes:
            answer = _search(cluster, uses).allocate(node, given, [use.key for use in uses], budget)
            if not isinstance(answer, Shortage):
                for allocation in answer.results:
                    given.add(allocation)
                served += 1
                break
        if budget.is_exceeded:
            return ""
    return f"there are devices for {served} of {len(waiting)} pods" if served < len(waiting) else ""


def _nodes(count: int) -> str:
    return f"{count} node{'s' if count != 1 else ''}"
