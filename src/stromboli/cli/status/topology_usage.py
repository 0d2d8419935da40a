"""How full the tiers of HyperNodes are, as plain data."""

from __future__ import annotations

from typing import Any

from stromboli.model.cluster import Cluster
from stromboli.model.topology.tier_occupancy import Room, TierOccupancies, TierOccupancy

Content = dict[str, Any]


def topology(cluster: Cluster) -> Content:
    """The tiers, and the HyperNodes that are left out; empty without HyperNodes."""
    tiers = [_tier(tier) for tier in TierOccupancies(cluster).current()]
    problems = dict(cluster.hyper_nodes.problems)
    return {
        **({"topology": tiers} if tiers else {}),
        **({"leftOutHyperNodes": problems} if problems else {}),
    }


def _tier(tier: TierOccupancy) -> Content:
    return {
        "tier": tier.tier,
        "name": tier.name,
        "hyperNodes": tier.free + tier.partly_free + tier.full,
        "free": tier.free,
        "full": tier.full,
        "rooms": {resource: _room(room) for resource, room in tier.rooms.items()},
    }


def _room(room: Room) -> Content:
    return {
        "total": room.total,
        "free": room.free,
        "largestGang": room.largest,
        "occupancy": round(room.occupancy, 4),
        "fragmentation": round(room.fragmentation, 4),
    }
