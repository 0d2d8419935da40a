"""What the ledgers of a cluster count, as texts that two clusters can be compared by."""

from __future__ import annotations

from collections.abc import Iterator

from stromboli.model.cluster import Cluster
from stromboli.model.devices.claim_use import ClaimUse
from stromboli.model.status import Status
from stromboli.model.task import Task

IN_FLIGHT = frozenset({Status.ALLOCATED, Status.PIPELINED, Status.BINDING, Status.RELEASING})
"""Statuses of tasks whose grants the objects may not show, or no longer show."""

Fact = tuple[tuple[str, str], str]
"""Kind and key of an object, and what is held of it."""


def ledger_facts(cluster: Cluster, unsettled: frozenset[str]) -> Iterator[Fact]:
    """What is held of cards, CPUs, claims and volumes, without what tasks of these uids have to do with."""
    tasks = [task for uid in unsettled if (task := cluster.tasks.get(uid)) is not None]
    busy = {task.node.name for task in tasks if task.node is not None}
    for node, models in cluster.cards.nodes.items():
        if node not in busy:
            for name, cards in models.items():
                now = cards.now
                taken = [*zip(now.sharers, now.memory, now.cores, strict=True)]
                yield ("Node", f"{node} {name}"), f"shares, memory and cores taken of cards {taken}"
    for node in cluster.cpus.nodes:
        if node not in busy:
            yield ("Node", f"{node} CPUs"), f"free CPUs {cluster.cpus.free(node) or 0:#x}"
    for key, use in cluster.devices.claims.items():
        if use.object is not None and not unsettled & _users(use):
            yield ("ResourceClaim", f"{key} devices"), f"holds {_devices(use)}"
    in_flight = {f"{task.namespace}/{claim.name}" for task in tasks for claim in task.volume_claims}
    for key in cluster.objects.claims.keys() - in_flight:
        if (promise := cluster.volumes.promise_to(key)) is not None:
            yield ("PersistentVolumeClaim", f"{key} promise"), f"is promised {promise.volume or promise.node}"


def unsettled_tasks(live: Cluster, fresh: Cluster) -> frozenset[str]:
    """Uids of tasks that are on their way onto a node or off it, or that only one of the clusters has there."""
    return frozenset(
        uid
        for uid in live.tasks.keys() | fresh.tasks.keys()
        if _place(live.tasks.get(uid)) != _place(fresh.tasks.get(uid)) or _in_flight(live.tasks.get(uid))
    )


def _in_flight(task: Task | None) -> bool:
    return task is not None and task.status in IN_FLIGHT


def _place(task: Task | None) -> str:
    return task.node.name if task is not None and task.node is not None else ""


def _users(use: ClaimUse) -> set[str]:
    reserved = use.object.status.reserved_for if use.object is not None else ()
    return {task.uid for task in use.users} | {consumer.uid for consumer in reserved}


def _devices(use: ClaimUse) -> list[str]:
    if use.counted is None:
        return []
    return [
        f"{result.driver}/{result.pool}/{result.device}" for result in use.counted.allocation.devices.results
    ]
