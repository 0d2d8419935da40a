"""Where requests fit into what nodes have free."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

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
    fewest: Ints = np.full(free.shape[1], most, dtype=np.int64)
    for dim, amount in request.items():
        if amount > 0 and dim >= len(free):
            return np.zeros_like(fewest)  # no node has a resource that only this request names
        if amount > 0:
            np.minimum(fewest, free[dim] // max(int(amount), 1), out=fewest)
    return np.maximum(fewest, 0)


class SlotCount:
    """How many tasks of a shape fit into what is free, by node and on all nodes together."""

    def __init__(self, shape: Shape, free: Ints):
        self._shape = shape
        self.by_row = slots(shape, free)
        self.total = int(self.by_row.sum())

    def update(self, rows: Ints, free: Ints) -> None:
        """Count some nodes again, of which this is free."""
        counted = slots(self._shape, free)
        self.total += int(counted.sum() - self.by_row[rows].sum())
        self.by_row[rows] = counted


def fits_into(task: Task, free: Ints) -> bool:
    """Whether a task's request fits into what one node has free."""
    request = task.shape.request
    return all(free[dim] >= request.get(dim, 0) for dim in task.shape.dims)
