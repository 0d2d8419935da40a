"""How many tasks of a sub-group are in each leaf, while a session places them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from stromboli.engine.placement.node_functions import Floats
    from stromboli.model.cluster import Change
    from stromboli.model.job import SubJob
    from stromboli.model.node_columns import Node
    from stromboli.plugins.network_topology_aware.leaf_distances import LeafDistances


class PlacedTasks:
    """Counted when a sub-group is first asked about, then kept up by moves."""

    def __init__(self, distances: LeafDistances):
        self._distances = distances
        self._counts: dict[SubJob, dict[int, int]] = {}

    def by_leaf(self, sub_job: SubJob) -> tuple[tuple[int, int], ...]:
        """How many tasks are in each leaf that has any, as something that can be compared."""
        return tuple(self._counted(sub_job).items())

    def shares(self, sub_job: SubJob) -> Floats:
        """The part of a sub-group's tasks that is in each leaf; the last place is for nodes in none."""
        shares = np.zeros(self._distances.count + 1)
        for leaf, count in self._counted(sub_job).items():
            shares[leaf] = count / len(sub_job.tasks)
        return shares

    def _counted(self, sub_job: SubJob) -> dict[int, int]:
        counts = self._counts.get(sub_job)
        if counts is None:
            counts = self._counts[sub_job] = {}
            for task in sub_job.tasks:
                self._count(counts, task.node, 1)
        return counts

    def follow(self, change: Change) -> None:
        """A task moved."""
        counts = self._counts.get(change.task.sub_job) if change.task.sub_job is not None else None
        if counts is not None and change.old_node is not change.node:
            self._count(counts, change.old_node, -1)
            self._count(counts, change.node, 1)

    def _count(self, counts: dict[int, int], node: Node | None, sign: int) -> None:
        leaf = self._distances.leaf_of(node)
        if leaf < 0:
            return
        left = counts.get(leaf, 0) + sign
        if left:
            counts[leaf] = left
        else:
            del counts[leaf]
