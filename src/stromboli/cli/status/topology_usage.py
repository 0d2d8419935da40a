"""How full the tiers of HyperNodes are, as plain data."""

from __future__ import annotations

from typing import Any

from stromboli.model.cluster import Cluster
from stromboli.model.topology.display_names import natural_order
from stromboli.model.topology.domain import Domain
from stromboli.model.topology.tier_occupancy import NODES, ResourceOccupancy, TierOccupancies, TierOccupancy

Content = dict[str, Any]


def topology(cluster: Cluster) -> Content:
    """The tiers, and the HyperNodes that are left out; empty without HyperNodes."""
    tiers = [_tier(tier) for tier in TierOccupancies(cluster).current()]
    problems = dict(cluster.hyper_nodes.problems)
    return {
        **({"topology": tiers} if tiers else {}),
        **({"leftOutHyperNodes": problems} if problems else {}),
    }


def hyper_node_tree(cluster: Cluster) -> list[Content]:
    """The HyperNodes below no other, each with those below it: its nodes, what is used and free, the largest gang.

    The largest gang is what fits below one of the HyperNodes that it is made of; of one of the lowest tier, in itself.
    """
    amounts = TierOccupancies(cluster).by_domain()

    def content(domain: Domain) -> Content:
        below = [content(child) for child in _in_order(domain)]
        own = amounts.get(domain.name, {})
        rooms = {
            resource: {
                "total": total,
                "free": free,
                "largestGang": max(
                    (child["rooms"].get(resource, {}).get("free", 0) for child in below), default=free
                ),
            }
            for resource, (total, free) in own.items()
            if total or resource == NODES
        }
        return {
            "name": domain.name,
            "title": domain.title,
            "tier": domain.tier,
            "tierName": domain.tier_name,
            "rooms": rooms,
            "hyperNodes": below,
        }

    return [content(domain) for domain in _in_order(cluster.hyper_nodes.top)]


def _in_order(domain: Domain) -> list[Domain]:
    """The HyperNodes that it is made of, in the order of what users read for them."""
    return sorted(domain.children, key=lambda child: natural_order(child.title))


def _tier(tier: TierOccupancy) -> Content:
    return {
        "tier": tier.tier,
        "name": tier.name,
        "hyperNodes": tier.free + tier.partly_free + tier.full,
        "free": tier.free,
        "rooms": {resource: _occupancy(each) for resource, each in tier.resources.items()},
    }


def _occupancy(resource: ResourceOccupancy) -> Content:
    return {
        "total": resource.total,
        "free": resource.free,
        "full": resource.full,
        "largestGang": resource.largest,
        "occupancy": round(resource.occupancy, 4),
        "fragmentation": round(resource.fragmentation, 4),
    }
