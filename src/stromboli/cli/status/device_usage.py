"""Devices by class, shared cards, and what queues have and may have of devices."""

from __future__ import annotations

from typing import Any

from stromboli.api.resources.resource_lists import resource_list
from stromboli.engine.queue_limits import own_capability
from stromboli.model.cluster import Cluster
from stromboli.model.devices.claim_use import class_of
from stromboli.model.devices.device_selection import SelectorTable, StepBudget
from stromboli.model.devices.pools.pool_devices import DeviceContent
from stromboli.model.queue import Queue

Content = dict[str, Any]
STEPS = 1_000_000
"""Steps that counting the devices of classes may take: those of later classes are not counted after that."""


def devices(cluster: Cluster) -> Content:
    """`devices`: how many devices of each class nodes have, and how many of them are in use; none without classes."""
    known: dict[tuple[object, str], tuple[DeviceContent, bool]] = {}
    for node in cluster.columns.nodes:
        for pool in cluster.devices.pools.pools_of(node):
            use = cluster.devices.in_use.of(pool.id)
            for device in pool.devices if pool.is_usable else ():
                used = use is not None and use.holds(device.name)
                known.setdefault((pool.id, device.name), (device.content, used))
    selectors, budget = SelectorTable(), StepBudget(STEPS)
    listed: list[Content] = []
    for name, device_class in sorted(cluster.objects.device_classes.items()):
        expressions = [each.cel.expression for each in device_class.spec.selectors if each.cel is not None]
        total = in_use = 0
        for content, used in known.values():
            budget.spend()
            if budget.is_exceeded:
                return {"devices": listed}
            if all(selectors.outcome(expression, content, budget) is True for expression in expressions):
                total, in_use = total + 1, in_use + used
        listed.append({"class": name, "total": total, "used": in_use, "free": total - in_use})
    return {"devices": listed} if listed else {}


def cards(cluster: Cluster) -> Content:
    """`cards`: what is used of each card that nodes share out; none where the policy shares none."""
    listed = [
        {
            "node": node,
            "card": card.uuid,
            "type": card.type,
            "healthy": card.healthy,
            "memory": {"used": shared.now.memory[card.index], "total": card.memory},
            "cores": {"used": shared.now.cores[card.index], "total": card.cores},
            "shares": shared.now.sharers[card.index],
        }
        for node, models in sorted(cluster.cards.nodes.items())
        for shared in models.values()
        for card in shared.cards
    ]
    return {"cards": listed} if listed else {}


def queue_devices(cluster: Cluster) -> dict[str, Content]:
    """By queue: what it and the queues below it have of devices, and may have, by the keys that queues name."""
    names = cluster.dims.names
    used: dict[str, dict[str, int]] = {}
    for queue, usage in cluster.devices.allocated.items():
        for above in _with_ancestors(cluster, queue):
            total = used.setdefault(above, {})
            for key, amount in usage.amounts.items():
                total[key] = total.get(key, 0) + amount
    result: dict[str, Content] = {}
    for queue in cluster.queues.values():
        limits = {
            names[dim]: int(most) for dim, most in own_capability(queue).items() if class_of(names[dim])
        }
        held = used.get(queue.name, {})
        entries = {
            key: {
                "used": _text(key, held.get(key, 0)),
                **({"limit": _text(key, limits[key])} if limits.get(key) else {}),
            }
            for key in sorted({*limits, *held})
        }
        if entries:
            result[queue.name] = entries
    return result


def _with_ancestors(cluster: Cluster, queue: Queue) -> list[str]:
    """The name of a queue and of those above it, each once, however they name each other."""
    names: dict[str, None] = {}
    known: Queue | None = queue
    while known is not None and known.name not in names:
        names[known.name] = None
        known = cluster.queues.get(known.parent)
    return list(names)


def _text(key: str, amount: int) -> str:
    return resource_list({key: amount}).get(key, "0")
