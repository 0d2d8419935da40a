"""Where requests fit into what nodes have free."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from stromboli.model.dimensions import PODS

if TYPE_CHECKING:
    from stromboli.engine.placement.node_functions import Bools
    from stromboli.model.amounts import Vector
    from stromboli.model.node_columns import Ints
    from stromboli.model.shape import Shape
    from stromboli.model.task import Task


def fits(task: Task, free: Ints) -> Bools:
    """Where a task's request fits into what is free: cpu and memory always, scalars only when named."""
    return fits_amounts(task.shape.request, free, task.shape.dims[1:])


def fits_amounts(request: Vector, free: Ints, dims: Sequence[int] = ()) -> Bools:
    """Where an amount fits into what is free, in some dimensions or in those that it names."""
    fitting: Bools = free[0] >= request.get(0, 0)
    for dim in dims or request:
        fitting &= free[dim] >= request.get(dim, 0)
    return fitting


MAX_SLOTS = 2**40
"""The maximum count of a node, so that the sum over all nodes fits into 64 bits."""


def slots(shape: Shape, free: Ints, most: int = MAX_SLOTS) -> Ints:
    """How many tasks of a shape fit into what is free, by node, up to so many."""
    return slots_of(shape.request, free, most)


def slots_of(request: Vector, free: Ints, most: int = MAX_SLOTS) -> Ints:
    """How many times a request fits into what is free, by node, up to so many."""
    asked = [(dim, max(int(amount), 1)) for dim, amount in request.items() if amount > 0]
    if any(dim >= len(free) for dim, _ in asked):
        return np.zeros(free.shape[1], dtype=np.int64)  # no node has a resource that only this request names
    fewest = times_fitting((free[dim], amount) for dim, amount in asked)
    return np.full(free.shape[1], most) if fewest is None else np.minimum(fewest, most, out=fewest)


def times_fitting(parts: Iterable[tuple[Ints, int]]) -> Ints | None:
    """How many times amounts fit into what is free, by node, or by moment and node: the scarcest resource decides.

    Each part is what is free of a resource and how much of it is asked for; none if nothing is.
    """
    fewest: Ints | None = None
    for free, asked in parts:
        fitting = free // asked
        fewest = fitting if fewest is None else np.minimum(fewest, fitting, out=fewest)
    return None if fewest is None else np.maximum(fewest, 0, out=fewest)


def asked_amounts(shape: Shape) -> dict[int, int]:
    """What a task of a shape requests, but for the pod that it is itself."""
    return {dim: int(amount) for dim, amount in shape.request.items() if amount > 0 and dim != PODS}


class Domains(Protocol):
    """Sets of nodes over which numbers by node are summed."""

    count: int

    def sums(self, values: NDArray[Any]) -> NDArray[Any]:
        """Values by node summed over each set."""


class SlotCount:
    """How many tasks of one kind fit into what is free: by node, on all nodes together, and in domains."""

    def __init__(self, request: Vector, free: Ints, usable: Bools | None = None):
        """Of tasks that may use any node, or `usable` ones only."""
        self.request = request
        self._usable = usable
        self.by_row = slots_of(request, free)
        if usable is not None:
            self.by_row *= usable
        self.total = int(self.by_row.sum())
        self._summed: tuple[Domains, NDArray[Any]] | None = None
        """The domains that were asked about last, and the slots of each."""

    def update(self, rows: Ints, free: Ints) -> None:
        """Count some nodes again, of which this is free."""
        counted = slots_of(self.request, free)
        if self._usable is not None:
            counted *= self._usable[rows]
        self.total += int(counted.sum() - self.by_row[rows].sum())
        self.by_row[rows] = counted
        self._summed = None

    def on(self, rows: Ints | Bools) -> int:
        """How many fit on some nodes."""
        return int(self.by_row[rows].sum())

    def within(self, domains: Domains) -> NDArray[Any]:
        """How many fit in each domain."""
        if self._summed is None or self._summed[0] is not domains:
            self._summed = domains, domains.sums(self.by_row)
        return self._summed[1]


class TaskSlots:
    """For how many of some tasks there are slots: those of each kind are counted as if there were no others."""

    def __init__(self, kinds: Iterable[tuple[SlotCount, int]], spare: int = 0):
        """`kinds`: of each kind of tasks their slots and their number; `spare`: slots beyond these, in every place."""
        self.kinds = list(kinds)
        self._spare = spare
        self._summed: tuple[Domains, Ints] | None = None

    @property
    def total(self) -> int:
        """On all nodes together."""
        return self._spare + sum(min(slots.total, number) for slots, number in self.kinds)

    @property
    def enough(self) -> bool:
        """Whether there are slots for all of the tasks."""
        return self.total >= sum(number for _, number in self.kinds)

    def on(self, rows: Ints) -> int:
        """On some nodes."""
        return self._spare + sum(min(slots.on(rows), number) for slots, number in self.kinds)

    def within(self, domains: Domains) -> Ints:
        """In each domain."""
        if self._summed is None or self._summed[0] is not domains:
            fitting = np.full(domains.count, self._spare, dtype=np.int64)
            for slots, number in self.kinds:
                fitting += np.minimum(slots.within(domains), number)
            self._summed = domains, fitting
        return self._summed[1]

    def update(self, rows: Ints, free: Ints) -> None:
        """Count some nodes again, of which this is free."""
        for slots, _ in self.kinds:
            slots.update(rows, free)
        self._summed = None


def fits_into(task: Task, free: Ints) -> bool:
    """Whether a task's request fits into what one node has free."""
    request = task.shape.request
    return all(free[dim] >= request.get(dim, 0) for dim in task.shape.dims)
