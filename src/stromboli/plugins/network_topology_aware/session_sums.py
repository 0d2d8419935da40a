"""The free resources of HyperNodes when the session opened, and their use now (spec 04 9)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from stromboli.model.amounts import EPSILON
from stromboli.model.dimensions import CPU, MEMORY

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    from stromboli.engine.placement.node_functions import Bools, Floats
    from stromboli.model.amounts import Vector
    from stromboli.model.node_columns import Ints
    from stromboli.model.topology.domain_sums import DomainSums

Part = tuple[int, float, int]
"""A resource by its number, the requested amount, and the weight."""


class SessionSums:
    """The sums over some domains: free resources when the session opened, use now."""

    def __init__(self, sums: DomainSums):
        self._sums = sums
        self.place = sums.lookup.place
        """The place of each domain."""
        self._free: Ints = sums.free.copy()
        self._free_in_future: Ints = sums.free_in_future.copy()
        self._leaving: Ints = sums.leaving.copy()
        self.opened: Hashable = self._leaving.tobytes()
        """What leaving tasks hold: all of the use that differs between sessions."""
        self._with_capacity: dict[tuple[str, tuple[tuple[int, float], ...]], Bools] = {}

    @property
    def free(self) -> Ints:
        """Free amounts now."""
        return self._sums.free

    @property
    def allocatable(self) -> Ints:
        """Total amounts."""
        return self._sums.allocatable

    def with_capacity(self, need: Vector, purpose: str) -> Bools:
        """Domains with a free amount, now or in future, when the session opened; to evict, with it in total."""
        key = (purpose, tuple(sorted(need.items())))
        known = self._with_capacity.get(key)
        if known is None:
            if purpose != "allocate":
                known = _covers(self._sums.allocatable, need)
            else:
                known = _covers(self._free, need) | _covers(self._free_in_future, need)
            self._with_capacity[key] = known
        return known

    def share(self, need: Vector) -> Floats:
        """The part of an amount that each domain had free when the session opened: of the scarcest resource."""
        share: Floats = np.full(len(self.place), np.inf)
        free = np.maximum(self._free, self._free_in_future)
        for dim, amount in need.items():
            if amount > 0:
                share = np.minimum(share, free[dim] / amount if dim < len(free) else 0.0)
        return share

    @property
    def used(self) -> Ints:
        """What is not free or was promised, less what was evicted in this session."""
        used: Ints = self._sums.allocatable - self._sums.free - self._sums.leaving + self._leaving
        return used

    def fullness(self, parts: Sequence[Part]) -> Floats:
        """How full each domain would be, from 0 to 1: the weighted mean over resources; 0 where it would overflow."""
        used, allocatable = self.used, self._sums.allocatable
        total, weights = np.zeros(used.shape[1]), 0
        fitting = np.ones(used.shape[1], dtype=bool)
        for dim, request, weight in parts:
            wanted, size = used[dim] + request, allocatable[dim]
            fitting &= wanted <= size
            total += weight * np.divide(wanted, size, out=np.zeros(len(size)), where=size > 0)
            weights += weight
        return np.where(fitting, total / weights, 0.0) if weights > 0 else np.zeros(len(total))


def _covers(sums: Ints, need: Vector) -> Bools:
    """Where the sums are at least what is needed, within the tolerance; an unknown resource has the sum 0."""
    covered = np.ones(sums.shape[1], dtype=bool)
    for dim in {CPU, MEMORY, *need}:
        amounts = sums[dim] if dim < len(sums) else np.zeros(sums.shape[1])
        covered &= amounts > need.get(dim, 0) - EPSILON
    return covered
