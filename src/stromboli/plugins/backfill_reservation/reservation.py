"""A promised start, and what others may still take of the nodes that it needs."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from stromboli.engine.placement.node_functions import Bools
    from stromboli.model.cluster import Cluster
    from stromboli.model.job import Job
    from stromboli.model.ledgers import Ledger
    from stromboli.model.node_columns import Ints, Node
    from stromboli.model.shape import Shape
    from stromboli.model.task import Task


@dataclass(slots=True, eq=False)
class StartReservation:
    """A job that waits for room, when it starts at the latest, and on which nodes."""

    job: Job
    start: float
    """When it starts at the latest, in seconds since 1970."""
    nodes: tuple[Node, ...]
    """The nodes that it needs."""
    rows: Ints
    """The same by row, in ascending order."""
    amounts: Ints
    """What it needs of them: (resource, place in `rows`)."""
    spare: Ints
    """What is left of them at its start beside it, in the same places; less with every task that stays beyond."""
    places: dict[Task, Node] = field(default_factory=dict)
    """Where its tasks go, if they are not all alike on one node."""
    alone: bool = False
    """Whether more than numbers decides where its tasks may be, so that no other may stay on its nodes."""
    ledgers: frozenset[Ledger] = frozenset()
    """What its tasks need besides amounts: no other that needs the same may stay on its nodes."""

    without_pods: bool = False
    """Whether its pods did not exist yet, so that its minimum resources were looked at alone."""

    def is_there(self) -> bool:
        """Whether its nodes are still there; they may have other rows than before."""
        rows = [node.row for node in self.nodes]
        if min(rows) < 0:
            return False
        if rows != self.rows.tolist():
            order = np.argsort(rows)
            self.nodes = tuple(self.nodes[place] for place in order.tolist())
            self.rows, self.amounts = np.array(rows, dtype=np.int64)[order], self.amounts[:, order]
        return True

    def leaves_room(self, cluster: Cluster, shape: Shape) -> Bools:
        """Where a task may stay beyond the start of the job without taking what that needs."""
        fits: Bools = np.ones(len(cluster.columns), dtype=bool)
        if self.alone or not self.ledgers.isdisjoint(cluster.ledgers_of(shape)):
            fits[self.rows] = False
            return fits
        beside: Bools = np.ones(len(self.rows), dtype=bool)
        for dim, amount in shape.request.items():
            if amount > 0:
                beside &= self.spare[dim] >= amount
        fits[self.rows] = beside
        return fits

    def beside(self, free: Ints) -> Ints:
        """What is free for tasks that stay beyond the start of the job, of what is free on each node."""
        left = free.copy()
        left[:, self.rows] = 0 if self.alone else np.minimum(left[:, self.rows], self.spare)
        return left

    def take(self, row: int, shape: Shape, sign: int) -> None:
        """A task that stays beyond the start of the job was put on a node, or (-1) taken off again."""
        place = int(self.rows.searchsorted(row))
        if place < len(self.rows) and self.rows[place] == row:
            self.spare[:, place] -= sign * shape.dense(len(self.spare))
