"""Whether pods of several shapes fit on empty nodes together: an exact answer for few pods and nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from stromboli.engine.placement.node_fit import slots_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stromboli.model.amounts import Vector
    from stromboli.model.node_columns import Bools, Ints

MAX_PODS, MAX_NODES = 16, 1000
"""How many pods, on how many nodes, are looked at."""
MAX_STEPS = 1000
"""How many times the search may try to place a pod."""


class Kind(NamedTuple):
    """Equal pods: how many there are, what each of them requests, and the nodes that each could have for itself."""

    number: int
    request: Vector
    nodes: Bools


def is_small(pods: int, nodes: int) -> bool:
    """Whether so many pods and nodes are few enough to be looked at."""
    return pods <= MAX_PODS and nodes <= MAX_NODES


def cannot_fit(kinds: Sequence[Kind], allocatable: Ints) -> bool:
    """Whether nodes cannot hold all of these pods; False also if that would take too long to find out."""
    total = sum(kind.number for kind in kinds)
    if all(np.count_nonzero(kind.nodes) >= total for kind in kinds):
        return False  # each pod has a node for itself
    usable = np.flatnonzero(np.logical_or.reduce([kind.nodes for kind in kinds]))
    free = allocatable[:, usable]
    most = free.max(axis=1, initial=0)
    kinds = sorted(
        (kind._replace(nodes=kind.nodes[usable]) for kind in kinds),
        key=lambda kind: max(amount / max(int(most[dim]), 1) for dim, amount in kind.request.items()),
        reverse=True,
    )
    if _fits_greedily(kinds, free.copy()):
        return False
    return _Search(kinds, free.copy()).is_in_vain()


def _fits_greedily(kinds: Sequence[Kind], free: Ints) -> bool:
    """Whether all pods fit if each kind in turn fills the first nodes; takes what they request from `free`."""
    for kind in kinds:
        slots = slots_of(kind.request, free) * kind.nodes
        before = np.cumsum(slots) - slots
        taken = np.clip(kind.number - before, 0, slots)
        if taken.sum() < kind.number:
            return False
        for dim, amount in kind.request.items():
            free[dim] -= taken * int(amount)
    return True


class _Search:
    """Tries all ways to place pods one by one, nodes alike only once."""

    def __init__(self, kinds: Sequence[Kind], free: Ints) -> None:
        self._pods = [kind for kind in kinds for _ in range(kind.number)]
        self._free = free
        self._eligible = np.array([kind.nodes for kind in kinds])
        self._steps = 0

    def is_in_vain(self) -> bool:
        """Whether there is no way to place all pods."""
        return not self._can_place(0) and self._steps <= MAX_STEPS

    def _can_place(self, place: int) -> bool:
        if place == len(self._pods):
            return True
        kind = self._pods[place]
        tried: set[tuple[bytes, bytes]] = set()
        for row in np.flatnonzero((slots_of(kind.request, self._free) > 0) & kind.nodes).tolist():
            alike = (self._free[:, row].tobytes(), self._eligible[:, row].tobytes())
            self._steps += 1
            if alike in tried or self._steps > MAX_STEPS:
                continue
            tried.add(alike)
            self._take(kind, row, 1)
            placed = self._can_place(place + 1)
            self._take(kind, row, -1)
            if placed:
                return True
        return False

    def _take(self, kind: Kind, row: int, sign: int) -> None:
        for dim, amount in kind.request.items():
            self._free[dim, row] -= sign * int(amount)
