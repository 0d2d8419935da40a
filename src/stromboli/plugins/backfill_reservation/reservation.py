"""A promised start, and what others may still take of the nodes that it needs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from stromboli.engine.placement.node_functions import Bools
    from stromboli.model.job import Job
    from stromboli.model.node_columns import Ints
    from stromboli.model.shape import Shape


@dataclass(slots=True, eq=False)
class Reservation:
    """A job that waits for room, when it starts at the latest, and on which nodes."""

    job: Job
    start: float
    """When it starts at the latest, in seconds since 1970."""
    rows: Ints
    """The nodes that it needs, by row."""
    amounts: Ints
    """What it needs of them: (resource, place in `rows`)."""
    spare: Ints
    """What is left of them at its start beside it, in the same places; less with every task that stays beyond."""

    def leaves_room(self, shape: Shape, nodes: int) -> Bools:
        """Where a task may stay beyond the start of the job without taking what that needs."""
        fits: Bools = np.ones(nodes, dtype=bool)
        beside: Bools = np.ones(len(self.rows), dtype=bool)
        for dim, amount in shape.request.items():
            if amount > 0:
                beside &= self.spare[dim] >= amount
        fits[self.rows] = beside
        return fits

    def take(self, row: int, shape: Shape, sign: int) -> None:
        """A task that stays beyond the start of the job was put on a node, or (-1) taken off again."""
        place = int(self.rows.searchsorted(row))
        if place < len(self.rows) and self.rows[place] == row:
            self.spare[:, place] -= sign * shape.dense(len(self.spare))
