"""What ledgers have given out, in plain values, and what is given out as tasks and objects tell it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

from stromboli.model.cards.card_ledger import CardLedger
from stromboli.model.cluster import Cluster
from stromboli.model.cpus.cpu_ledger import CpuGrant, CpuLedger
from stromboli.model.cpus.cpu_topology import parse_cpu_set
from stromboli.model.devices.claim_use import ClaimGrant
from stromboli.model.devices.device_ledger import DeviceLedger
from stromboli.model.devices.devices_in_use import DevicesInUse
from stromboli.model.ledgers import Ledger
from stromboli.model.volumes.volume_grant import VolumeGrant
from stromboli.model.volumes.volume_ledger import VolumeLedger


def ledger_sums(cluster: Cluster) -> dict[str, Any]:
    """All that ledgers count, by ledger."""
    return {type(ledger).__name__: _sums(ledger, cluster) for ledger in cluster.ledgers}


def _sums(ledger: Ledger, cluster: Cluster) -> Any:
    kind = type(ledger)
    assert kind in SUMS, (
        f"{kind.__name__}: add a function to SUMS in {__name__} that reads what this ledger counts"
    )
    return SUMS[kind](ledger, cluster)


def _card_sums(cards: CardLedger, cluster: Cluster) -> Any:
    return {
        node: {
            model: (_columns(of_model.now), _columns(of_model.later)) for model, of_model in models.items()
        }
        for node, models in cards.nodes.items()
    }


def _cpu_sums(cpus: CpuLedger, cluster: Cluster) -> Any:
    return {node: cpus.free(node) for node in cpus.nodes}


def _volume_sums(volumes: VolumeLedger, cluster: Cluster) -> Any:
    return {
        "taken volumes": sorted(volumes.free.taken),
        "free volumes": {name: volumes.free.free(name) is not None for name in cluster.objects.volumes},
        "promises": dict(volumes._promises),
        "promised storage": {
            name: dict(claims) for name, claims in volumes.capacity._promised.items() if claims
        },
    }


def _device_sums(devices: DeviceLedger, cluster: Cluster) -> Any:
    return {
        "devices": _devices(devices.in_use),
        "staying devices": _devices(devices.staying),
        "leaving claims": devices.leaving,
        "queues": {queue.name: dict(usage.amounts) for queue, usage in devices.held.items() if usage.amounts},
    }


SUMS: dict[type[Ledger], Callable[[Any, Cluster], Any]] = {
    CardLedger: _card_sums,
    CpuLedger: _cpu_sums,
    VolumeLedger: _volume_sums,
    DeviceLedger: _device_sums,
}
"""What each kind of ledger counts, in plain values."""


def _columns(columns: Any) -> dict[str, Any]:
    return {
        "sharers": list(columns.sharers),
        "memory": list(columns.memory),
        "cores": list(columns.cores),
        "holders": [{task.uid: count for task, count in held.items()} for held in columns.holders],
    }


def _devices(in_use: DevicesInUse) -> dict[str, dict[str, int]]:
    return {str(pool): dict(use.whole) for pool, use in in_use._pools.items()}


def given_twice(cluster: Cluster) -> list[str]:
    """What more than one holds, looked up task by task and object by object, without any ledger."""
    return [thing for thing, count in Counter(_given(cluster)).items() if count > 1] + list(
        _overfull(cluster)
    )


def _given(cluster: Cluster) -> Iterator[str]:
    """Whatever is given out whole, once for each that holds it."""
    claims: dict[str, str] = {}
    allocations: dict[str, Any] = {
        key: claim.status.allocation for key, claim in cluster.objects.resource_claims.items()
    }
    for key, claim in cluster.objects.claims.items():
        if claim.spec.volume_name:
            claims[key] = claim.spec.volume_name
    for task in cluster.tasks.values():
        for grant in task.grants:
            if isinstance(grant, VolumeGrant) and grant.volume:
                claims[f"{grant.namespace}/{grant.claim}"] = grant.volume
            elif isinstance(grant, ClaimGrant) and grant.allocation is not None:
                allocations[f"{grant.namespace}/{grant.name}"] = grant.allocation
            elif isinstance(grant, CpuGrant) and task.node is not None:
                mask = parse_cpu_set(grant.cpus)
                yield from (
                    f"{task.node.name}: CPU {cpu}" for cpu in range(mask.bit_length()) if mask >> cpu & 1
                )
    yield from (f"volume {volume}" for volume in claims.values())
    for allocation in allocations.values():
        for result in allocation.devices.results if allocation is not None else ():
            yield f"device {result.driver}/{result.pool}/{result.device}"


def _overfull(cluster: Cluster) -> Iterator[str]:
    """Cards of which more is given out than they have."""
    for node, models in cluster.cards.nodes.items():
        for cards in models.values():
            for card in cards.cards:
                used = cards.now
                if used.sharers[card.index] > card.count or used.memory[card.index] > card.memory:
                    yield f"{node}: card {card.uuid}"
