"""What empty nodes hold, and whether they could hold some pods together."""

from __future__ import annotations

import sys
from collections import Counter
from typing import TYPE_CHECKING, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from stromboli.engine.placement.node_fit import SlotCount, asked_amounts, slots_of
from stromboli.model.amounts import lacking, total_of
from stromboli.model.constraints.node_selection import matching_nodes, open_nodes, selects_nodes

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from stromboli.model.amounts import Amounts, Vector
    from stromboli.model.node_columns import Bools, Columns, Ints
    from stromboli.model.shape import Shape
    from stromboli.model.task import Task

MAX_PODS, MAX_NODES = 16, 1000
"""How many pods of several shapes, on how many nodes, are packed exactly."""
MAX_STEPS = 1000
"""How many times the search may try to place a pod."""


class NodeSizes:
    """What nodes hold when they are empty, or besides some tasks."""

    by_labels = False
    """Whether a shape fits only on nodes that its node selector and node affinity match."""

    def __init__(self, columns: Columns, tasks: Iterable[Task] = ()) -> None:
        self._columns = columns
        self._allocatable = columns.allocatable.copy()
        for task in tasks:
            for dim, amount in task.request.items():
                if task.node is not None and task.node.row >= 0 and dim < len(self._allocatable):
                    self._allocatable[dim, task.node.row] -= int(amount)
        np.maximum(self._allocatable, 0, out=self._allocatable)
        self.total: Amounts = columns.total(self._allocatable)
        """What all nodes hold together."""
        self._totals: WeakKeyDictionary[Shape, int] = WeakKeyDictionary()
        self._slots: WeakKeyDictionary[Shape, SlotCount] = WeakKeyDictionary()

    def total_slots(self, shape: Shape) -> int:
        """How many tasks of a shape empty nodes hold, without regard to limits on pods."""
        known = self._totals.get(shape)
        if known is None:
            selected = self._selected(shape)
            if selected is not None and not selected.any():
                known = 0
            elif asked := asked_amounts(shape):
                known = SlotCount(asked, self._allocatable, selected).total
            else:
                known = sys.maxsize
            self._totals[shape] = known
        return known

    def slots(self, shape: Shape) -> SlotCount:
        """The slots for a shape that requests resources, by node; this takes memory for each node."""
        known = self._slots.get(shape)
        if known is None:
            known = SlotCount(asked_amounts(shape), self._allocatable, self._selected(shape))
            self._slots[shape] = known
        return known

    def cannot_hold(self, tasks: Sequence[Task], spare: int) -> bool:
        """Whether the nodes could not hold all but `spare` of some tasks."""
        counts = Counter(task.shape for task in tasks)
        too_many = sum(max(count - self.total_slots(shape), 0) for shape, count in counts.items())
        if too_many > spare:
            return True
        if spare or (len(counts) == 1 and not too_many):
            return False  # pods of one shape for which nodes have slots request no more than these nodes have
        requests = total_of(task.request for task in tasks)
        if lacking(requests, self.total, requests):
            return True
        if len(tasks) > MAX_PODS or self._allocatable.shape[1] > MAX_NODES:
            return False
        kinds = [
            Kind(count, asked, self.slots(shape).by_row > 0)
            for shape, count in counts.items()
            if (asked := asked_amounts(shape))
        ]
        return len(kinds) > 1 and cannot_fit(kinds, self._allocatable)

    def _selected(self, shape: Shape) -> Bools | None:
        """The nodes on which a shape may start, whatever their size; None for all nodes."""
        if self.by_labels and selects_nodes(shape.spec):
            return matching_nodes(self._columns, shape.spec)
        return None

    @property
    def allocatable(self) -> Ints:
        """What nodes hold, by resource and node."""
        return self._allocatable

    def differs(self, earlier: NodeSizes | None) -> bool:
        """Whether nodes have other sizes than earlier, or a known shape selects other nodes."""
        if earlier is None or not np.array_equal(self._allocatable, earlier._allocatable):
            return True
        if not self.by_labels:
            return False
        return any(
            selects_nodes(shape.spec) and self.total_slots(shape) != total
            for shape, total in list(earlier._totals.items())
        ) or any(
            selects_nodes(shape.spec) and not np.array_equal(self.slots(shape).by_row, slots.by_row)
            for shape, slots in list(earlier._slots.items())
        )


class SelectedNodeSizes(NodeSizes):
    """Sizes of nodes, where a shape fits only on nodes that it selects."""

    by_labels = True


class OpenNodeSizes(SelectedNodeSizes):
    """Sizes of selected nodes that are neither cordoned nor have a taint which the shape does not tolerate."""

    def _selected(self, shape: Shape) -> Bools | None:
        selected = super()._selected(shape)
        usable = open_nodes(self._columns, shape.spec.tolerations)
        return usable if selected is None else selected & usable


# -- packing: an exact answer for few pods and nodes


class Kind(NamedTuple):
    """Equal pods: their number, the request of each, and the nodes that are large enough for one."""

    number: int
    request: Vector
    nodes: Bools


def cannot_fit(kinds: Sequence[Kind], allocatable: Ints) -> bool:
    """Whether nodes cannot hold all these pods; False if the search takes too long."""
    total = sum(kind.number for kind in kinds)
    if all(np.count_nonzero(kind.nodes) >= total for kind in kinds):
        return False  # each pod can have its own node
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
    return _Search(kinds, free.copy()).finds_none()


def _fits_greedily(kinds: Sequence[Kind], free: Ints) -> bool:
    """Whether all pods fit if each kind in turn fills the first nodes; subtracts their requests from `free`."""
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
    """Tries all ways to place pods one by one, equal nodes only once."""

    def __init__(self, kinds: Sequence[Kind], free: Ints) -> None:
        self._pods = [kind for kind in kinds for _ in range(kind.number)]
        self._free = free
        self._eligible = np.array([kind.nodes for kind in kinds])
        self._steps = 0

    def finds_none(self) -> bool:
        """Whether all ways were tried and none places all pods."""
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
