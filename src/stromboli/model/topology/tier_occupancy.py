"""The occupancy of the tiers of the network, and the largest gang that still fits below one switch of each.

Sizes of gangs are in whole nodes and in GPUs. Training uses one or the other, and unlike pods of some size they do not
depend on the pending pods. A node is free if it accepts new pods and has no pod of this scheduler.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from stromboli.api.node_state import is_gpu, is_usable
from stromboli.model.cluster import Cluster
from stromboli.model.dimensions import CPU, MEMORY
from stromboli.model.node_columns import Bools, Columns
from stromboli.model.topology.domain_sums import DomainLookup

Floats = NDArray[np.float64]
NODES, GPUS = "nodes", "gpus"
RESOURCES = (NODES, GPUS, "cpu", "memory")
MAX_TIERS = 16
"""Maximum tiers that are reported, the lowest ones; networks have about five."""


class ResourceOccupancy(NamedTuple):
    """A resource of the HyperNodes of a tier, in nodes, GPUs, cores or bytes."""

    total: float
    """Their total capacity."""
    free: float
    """The free part of it, on nodes that accept new pods."""
    largest: float
    """The maximum that is free below one of them: the largest gang that still fits there."""
    largest_if_empty: float
    """The same if nothing were in use."""
    full: int = 0
    """HyperNodes with the resource but without a free part of it."""

    @property
    def occupancy(self) -> float:
        """The part that is in use, or cannot be used, from 0 to 1."""
        return 1 - self.free / self.total if self.total else 0.0

    @property
    def fragmentation(self) -> float:
        """How much smaller the largest gang is than if the free resources were contiguous: 0 as large, 1 none."""
        possible = min(self.free, self.largest_if_empty)
        return 1 - self.largest / possible if possible else 0.0


class TierOccupancy(NamedTuple):
    """A tier of HyperNodes; those without any nodes are not counted."""

    tier: int
    name: str
    """The name of the tier, if it has one."""
    free: int
    """HyperNodes of which all nodes are free."""
    partly_free: int
    full: int
    """HyperNodes without a free node."""
    resources: dict[str, ResourceOccupancy]
    """By resource: `nodes`, `gpus` if any exist, `cpu`, `memory`."""


class TierOccupancies:
    """The occupancy of all tiers; repeated calls read only nodes that changed."""

    def __init__(self, cluster: Cluster):
        self.cluster = cluster
        self._lookup: DomainLookup | None = None
        self._clock = -1
        self._vacant: Bools = np.zeros(0, dtype=bool)
        """Usable nodes without a pod of this scheduler."""
        self._usable: Bools = np.zeros(0, dtype=bool)
        self._known: list[TierOccupancy] = []

    def current(self) -> list[TierOccupancy]:
        """The tiers, the lowest first; none without HyperNodes."""
        tree, columns = self.cluster.hyper_nodes, self.cluster.columns
        if not tree:
            self._lookup, self._known = None, []
            return []
        if self._lookup is not tree.lookup:
            self._lookup, self._clock = tree.lookup, -1
            self._vacant, self._usable = np.zeros((2, len(columns)), dtype=bool)
        if self._clock != columns.clock:
            self._look_at_nodes(columns)
            amounts = _amounts(columns, self._usable, self._vacant)
            below = tree.lookup.sums(amounts)
            of_tiers = (_occupancy(tree.lookup, tier, amounts, below) for tier in tree.tiers[:-1][:MAX_TIERS])
            self._known = [tier for tier in of_tiers if tier is not None]
        return self._known

    def by_domain(self) -> dict[str, dict[str, tuple[float, float]]]:
        """Total and free amounts of each HyperNode with nodes, by resource."""
        if not self.current() or self._lookup is None:
            return {}
        amounts = _amounts(self.cluster.columns, self._usable, self._vacant)
        total, free = self._lookup.sums(amounts).transpose(0, 2, 1).tolist()
        return {
            domain.name: dict(zip(RESOURCES, zip(total[place], free[place], strict=True), strict=True))
            for place, domain in enumerate(self._lookup.domains[:-1])  # without the top
            if len(domain.rows)
        }

    def _look_at_nodes(self, columns: Columns) -> None:
        for row in np.flatnonzero(columns.version > self._clock).tolist():
            node = columns.nodes[row]
            self._usable[row] = node.object is not None and is_usable(node.object)
            self._vacant[row] = self._usable[row] and not any(task.ours for task in node.tasks)
        self._clock = columns.clock


def _amounts(columns: Columns, usable: Bools, vacant: Bools) -> Floats:
    """Total and free amounts of nodes, shaped (total or free, resource, node)."""
    gpus = [dim for dim, name in enumerate(columns.dims.names[: len(columns.idle)]) if is_gpu(name)]
    has, idle = columns.allocatable, columns.idle.clip(min=0)
    total = [np.ones(len(columns)), has[gpus].sum(axis=0) / 1000, has[CPU] / 1000, has[MEMORY]]
    free = [vacant, idle[gpus].sum(axis=0) / 1000 * usable, idle[CPU] / 1000 * usable, idle[MEMORY] * usable]
    return np.array([total, free], dtype=np.float64)


def _occupancy(lookup: DomainLookup, tier: int, of_nodes: Floats, of_domains: Floats) -> TierOccupancy | None:
    """The occupancy of a tier by the amounts of nodes and domains; none if its HyperNodes have no nodes."""
    places = [place for place in lookup.places(tier) if len(lookup.domains[place].rows)]
    if not places:
        return None
    inside = lookup.of_tier(tier) >= 0
    total, free = of_nodes[:, :, inside].sum(axis=2)
    total_below, free_below = of_domains[:, :, places]
    resources = {
        resource: ResourceOccupancy(
            float(total[index]),
            float(free[index]),
            float(free_below[index].max()),
            float(total_below[index].max()),
            int(((total_below[index] > 0) & (free_below[index] <= 0)).sum()),
        )
        for index, resource in enumerate(RESOURCES)
    }
    if not resources[GPUS].total:
        del resources[GPUS]
    nodes, free_nodes = total_below[0], free_below[0]
    empty, full = int((free_nodes == nodes).sum()), int((free_nodes == 0).sum())
    name = next(filter(None, (lookup.domains[place].tier_name for place in places)), "")
    return TierOccupancy(tier, name, empty, len(places) - empty - full, full, resources)
