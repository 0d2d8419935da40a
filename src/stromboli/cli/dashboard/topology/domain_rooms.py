"""What HyperNodes have and what is in use below them, summed over their nodes; and which jobs lie there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from stromboli.cli.dashboard.topology.gang_room import GangRoom
from stromboli.cli.dashboard.topology.network_tree import NetworkTree
from stromboli.cli.dashboard.topology.node_occupancy import Bools, Floats, NodeOccupancy
from stromboli.model.topology.domain import Domain


class ResourceUse(NamedTuple):
    """What the nodes of a tier have of a resource and what is in use; a node in several HyperNodes counts once."""

    used: float
    has: float
    full: int
    """HyperNodes that have the resource and have none of it free on usable nodes."""


class TierSummary(NamedTuple):
    """The HyperNodes of a tier, those without nodes left out."""

    tier: int
    name: str
    """The name of the tier, if it has any."""
    hyper_nodes: int
    free: int
    """HyperNodes of which all nodes are free."""
    uses: dict[str, ResourceUse]
    """By resource."""
    nodes: int
    free_nodes: int
    """One that is in several of them counts once."""


class DomainRooms:
    """Sums over all HyperNodes, in the order of `NetworkTree.domains`."""

    def __init__(self, occupancy: NodeOccupancy, resources: Sequence[str], gang: GangRoom) -> None:
        self._occupancy = occupancy
        self.network: NetworkTree = occupancy.network
        self.resources = tuple(resources)
        self._jobs: dict[int, int] = {}
        self.place = {domain.name: place for place, domain in enumerate(self.network.domains)}
        columns = [occupancy.columns(resource) for resource in resources]
        values = [np.ones(len(occupancy)), occupancy.free_nodes, gang.by_node]
        values += [each.has for each in columns] + [each.used for each in columns]
        values += [each.free * occupancy.usable for each in columns]
        sums: Floats = self.network.sums(np.array(values, dtype=np.float64))
        self.nodes, self.free_nodes, self.fitting = (sums[row].astype(int).tolist() for row in range(3))
        count = len(self.resources)
        self.has = dict(zip(resources, sums[3 : 3 + count].tolist(), strict=True))
        self.used = dict(zip(resources, sums[3 + count : 3 + 2 * count].tolist(), strict=True))
        self._free = dict(zip(resources, sums[3 + 2 * count :].tolist(), strict=True))

    def is_free(self, place: int) -> bool:
        """Whether all nodes of a HyperNode are free."""
        return bool(self.free_nodes[place] == self.nodes[place])

    def is_full(self, place: int, resource: str) -> bool:
        """Whether a HyperNode has a resource and has none of it free."""
        return bool(self.has[resource][place] > 0 >= self._free[resource][place])

    def tiers(self) -> list[TierSummary]:
        """All tiers, the lowest first."""
        members: dict[int, list[int]] = {}
        for place, domain in enumerate(self.network.domains):
            if self.nodes[place]:
                members.setdefault(domain.tier, []).append(place)
        return [
            TierSummary(
                tier,
                self.network.tier_name(tier),
                len(places),
                sum(map(self.is_free, places)),
                {name: self._use(name, places, inside) for name in self.resources},
                int(inside.sum()),
                int((inside & self._occupancy.free_nodes).sum()),
            )
            for tier, places in sorted(members.items())
            for inside in [self.network.in_tier(tier)]
        ]

    def _use(self, resource: str, places: list[int], inside: Bools) -> ResourceUse:
        columns = self._occupancy.columns(resource)
        full = sum(self.is_full(place, resource) for place in places)
        return ResourceUse(float(columns.used[inside].sum()), float(columns.has[inside].sum()), full)

    def jobs(self, place: int) -> int:
        """How many jobs have a pod in a HyperNode; one that lies in several counts in each."""
        if place not in self._jobs:
            self._jobs[place] = self._occupancy.jobs.job_count(
                node_names(self._occupancy, self.network.domains[place])
            )
        return self._jobs[place]


def node_names(occupancy: NodeOccupancy, domain: Domain) -> list[str]:
    """The nodes of a HyperNode."""
    return [occupancy.names[row] for row in domain.rows.tolist()]
