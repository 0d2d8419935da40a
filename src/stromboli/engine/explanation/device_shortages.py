"""What a pod with ResourceClaims lacks: which request finds no devices, on how many nodes, and why."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from stromboli.api import device_messages as messages
from stromboli.engine.explanation.device_limits import (
    STEPS,
    never_for_gang,
    never_on_a_node,
    search_for,
    served_pods,
    unallocated,
)
from stromboli.model.devices.allocator import DevicesInUse, Shortage, StepBudget
from stromboli.model.devices.claim_plan import device_classes
from stromboli.model.devices.task_claims import task_claims
from stromboli.model.status import Status

if TYPE_CHECKING:
    from stromboli.model.cluster import Cluster
    from stromboli.model.devices.claim_use import ClaimUse
    from stromboli.model.job import Job
    from stromboli.model.task import Task

SHOWN = 3
"""Shortages that are told, the one of the most nodes first."""
_MISTAKES = (
    (
        "ResourceClaim not created yet",
        "create the ResourceClaimTemplate that it references: its claim is generated from it",
    ),
    ("could not find ResourceClaim", "create the ResourceClaim"),
    ("device class", "create the DeviceClass, or request an existing one: kubectl get deviceclasses"),
    (
        "no such key",
        "fix the selector of the claim or of its class: kubectl get resourceslices -o yaml shows the attributes of "
        "devices, and has() tests whether a device has one",
    ),
    ("CEL", "fix the selector of the claim or of its class"),
    ("exceeds the claim limit", "request fewer devices in a claim"),
    ("are allowed for a pod", "request fewer devices in the claims of a pod"),
)


def is_mistake(reason: str) -> bool:
    """Whether a reason says that a claim, its class or its selector is wrong, so that waiting is no help."""
    return any(words in reason for words, _ in _MISTAKES)


def way_to_devices(cluster: Cluster, task: Task, reason: str) -> str:
    """What would let a task have the devices that it claims; empty for a reason that is none of claims."""
    if reason == messages.CANNOT_ALLOCATE:
        return _way_to_free_devices(cluster, task)
    if reason == messages.NOT_AVAILABLE:
        return "its claim has devices that other nodes cannot reach: free capacity on the nodes that can"
    if reason == messages.IN_USE:
        return "wait until the other pod releases the claim, or use a separate claim"
    return next((way_out for words, way_out in _MISTAKES if words in reason), "")


def devices_in_numbers(cluster: Cluster, task: Task, reason: str) -> str:
    """The same with what is short, and on how many nodes."""
    way_out = way_to_devices(cluster, task, reason)
    uses = _unallocated(cluster, task)
    if reason != messages.CANNOT_ALLOCATE or not uses:
        return way_out
    numbers = _by_nodes(cluster, uses) or (_of_gang(cluster, task.job) if task.job is not None else "")
    return f"{numbers}: {way_out}" if numbers else way_out


def _way_to_free_devices(cluster: Cluster, task: Task) -> str:
    """What can never be had is told instead of waiting for it."""
    uses = _unallocated(cluster, task)
    if not uses:
        return ""
    never = never_on_a_node(cluster, uses) or (never_for_gang(cluster, task.job) if task.job else "")
    classes = " or ".join(list(device_classes(*(use.content.spec for use in uses if use.content)))[:SHOWN])
    return (
        never
        or f"wait until devices of class {classes} are free, request others, or add nodes that have them"
    )


def _unallocated(cluster: Cluster, task: Task) -> list[ClaimUse]:
    return unallocated(task_claims(cluster.devices, task))


def _by_nodes(cluster: Cluster, uses: list[ClaimUse]) -> str:
    """What is short node by node; empty if some node has it all."""
    search, budget, counts = search_for(cluster, uses), StepBudget(STEPS), Counter[str]()
    for node in cluster.columns.nodes:
        answer = search.answer(node, cluster.devices.in_use, budget)
        if budget.is_exceeded:
            break
        if not isinstance(answer, Shortage):
            return ""
        counts[answer.message] += 1
    shown = counts.most_common(SHOWN)
    texts = [f"on {_nodes(count)} {text}" for text, count in shown]
    if others := len(cluster.columns) - sum(count for _, count in shown):
        texts.append(f"on {_nodes(others)} something else is missing")
    return "; ".join(texts)


def _of_gang(cluster: Cluster, job: Job) -> str:
    """How many pods of a gang find devices one after the other, where each of them would by itself."""
    given = DevicesInUse()
    for use in cluster.devices.claims.values():
        if use.allocation is not None:
            given.add(use.allocation)
    waiting = job.counts[Status.PENDING]
    served = served_pods(cluster, job, waiting, given)
    return (
        f"devices are available for {served} of {waiting} pods"
        if served is not None and served < waiting
        else ""
    )


def _nodes(count: int) -> str:
    return f"{count} node{'s' if count != 1 else ''}"
