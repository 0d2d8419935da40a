"""The occupancy of the tiers of the network, and the largest gang that still fits below one switch of each.

Sizes of gangs are in whole nodes and in GPUs. Training uses one or the other, and unlike pods of some size they do not
depend on the pending pods. A node is free if it accepts new pods and has no pod of this scheduler.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from stromboli.api.node_state import is_gpu, is_usable
from stromboli.model.cluster import Cluster
from stromboli.model.dimensions import CPU, MEMORY
from stromboli.model.node_columns import Bools, Columns
from stromboli.model.topology.domain import Domain
from stromboli.model.topology.domain_sums import RowGroups

Floats = NDArray[np.float64]
NODES, GPUS = "nodes", "gpus"
RESOURCES = (NODES, GPUS, "cpu", "memory")
MAX_TIERS = 16
"""Maximum tiers that are reported, the lowest ones; networks have about five."""


class Room(NamedTuple):
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
    rooms: dict[str, Room]
    """By resource: `nodes`, `gpus` if any exist, `cpu`, `memory`."""


class TierOccupancies:
    """The occupancy of all tiers; repeated calls read only nodes that changed."""

    def __init__(self, cluster: Cluster):
        self.cluster = cluster
        self._shape: tuple[int, int] | None = None
        self._clock = -1
        self._vacant: Bools = np.zeros(0, dtype=bool)
        """Usable nodes without a pod of this scheduler."""
        self._usable: Bools = np.zeros(0, dtype=bool)
        self._tiers: list[tuple[list[Domain], RowGroups, Bools]] = []
        """By tier: its HyperNodes, their nodes one by one, and all of these."""
        self._known: list[TierOccupancy] = []

    def current(self) -> list[TierOccupancy]:
        """The tiers, the lowest first; none without HyperNodes."""
        tree, columns = self.cluster.hyper_nodes, self.cluster.columns
        if not tree:
            self._shape, self._tiers, self._known = None, [], []
            return []
        if self._shape != (tree.version, columns.layout):
            self._shape, self._clock = (tree.version, columns.layout), -1
            self._vacant, self._usable = np.zeros((2, len(columns)), dtype=bool)
            self._tiers = [
                _tier(tree.domains.values(), tier, len(columns)) for tier in tree.tiers[:MAX_TIERS]
            ]
        if self._clock != columns.clock:
            self._look_at_nodes(columns)
            total, free = _amounts(columns, self._usable, self._vacant)
            self._known = [
                _occupancy(domains, groups, inside, total, free)
                for domains, groups, inside in self._tiers
                if domains
            ]
        return self._known

    def by_domain(self) -> dict[str, dict[str, tuple[float, float]]]:
        """Total and free amounts of each HyperNode with nodes, by resource."""
        if not self.current():
            return {}
        total, free = _amounts(self.cluster.columns, self._usable, self._vacant)
        amounts: dict[str, dict[str, tuple[float, float]]] = {}
        for domains, groups, _ in self._tiers:
            has, has_free = (groups.sums(part).T.tolist() for part in (total, free))
            for domain, own, own_free in zip(domains, has, has_free, strict=True):
                amounts[domain.name] = dict(zip(RESOURCES, zip(own, own_free, strict=True), strict=True))
        return amounts

    def _look_at_nodes(self, columns: Columns) -> None:
        for row in np.flatnonzero(columns.version > self._clock).tolist():
            node = columns.nodes[row]
            self._usable[row] = node.object is not None and is_usable(node.object)
            self._vacant[row] = self._usable[row] and not any(task.ours for task in node.tasks)
        self._clock = columns.clock


def _tier(domains: Iterable[Domain], tier: int, count: int) -> tuple[list[Domain], RowGroups, Bools]:
    members = [domain for domain in domains if domain.tier == tier and len(domain.rows)]
    inside = np.zeros(count, dtype=bool)
    for domain in members:
        inside[domain.rows] = True
    return members, RowGroups([domain.rows for domain in members], count), inside


def _amounts(columns: Columns, usable: Bools, vacant: Bools) -> tuple[Floats, Floats]:
    """Total and free amounts of nodes, shaped (resource, node)."""
    gpus = [dim for dim, name in enumerate(columns.dims.names[: len(columns.idle)]) if is_gpu(name)]
    has, idle = columns.allocatable, columns.idle.clip(min=0)
    total = [np.ones(len(columns)), has[gpus].sum(axis=0) / 1000, has[CPU] / 1000, has[MEMORY]]
    free = [vacant, idle[gpus].sum(axis=0) / 1000 * usable, idle[CPU] / 1000 * usable, idle[MEMORY] * usable]
    return np.array(total, dtype=np.float64), np.array(free, dtype=np.float64)


def _occupancy(
    domains: Sequence[Domain], groups: RowGroups, inside: Bools, total: Floats, free: Floats
) -> TierOccupancy:
    total_below, free_below = groups.sums(total), groups.sums(free)
    rooms = {
        resource: Room(
            float(total[place, inside].sum()),
            float(free[place, inside].sum()),
            float(free_below[place].max()),
            float(total_below[place].max()),
            int(((total_below[place] > 0) & (free_below[place] <= 0)).sum()),
        )
        for place, resource in enumerate(RESOURCES)
    }
    if not rooms[GPUS].total:
        del rooms[GPUS]
    nodes, free_nodes = total_below[0], free_below[0]
    empty, full = int((free_nodes == nodes).sum()), int((free_nodes == 0).sum())
    name = next((domain.tier_name for domain in domains if domain.tier_name), "")
    return TierOccupancy(domains[0].tier, name, empty, len(domains) - empty - full, full, rooms)
