"""Ranks side by side: the leaf for a pod of a gang, near the pod with the index before its own.

Collective operations of a gang mostly pass data from each rank to the next. Where ranks fill one leaf before the
next, all such pairs share a switch but those at the borders between leaves.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from stromboli.model.status import Status

if TYPE_CHECKING:
    from stromboli.engine.placement.node_functions import Bools, Floats, Nodes
    from stromboli.model.job import SubJob
    from stromboli.model.node_columns import Ints
    from stromboli.model.task import Task
    from stromboli.model.topology.domain import Domain
    from stromboli.plugins.network_topology_aware.leaf_distances import LeafDistances
    from stromboli.plugins.network_topology_aware.placed_tasks import PlacedTasks


class RankNeighbours:
    """Tasks of sub-groups in order of role and index, as of a session."""

    def __init__(self, distances: LeafDistances, placed: PlacedTasks):
        self._distances = distances
        self._placed = placed
        self._ranks: dict[SubJob, list[Task]] = {}
        self._rank: dict[Task, int] = {}

    def leaf_of_neighbour(self, task: Task, sub_job: SubJob) -> int:
        """The leaf of the placed task whose rank is nearest to this task's, of two the lower; -1: there is none."""
        if sub_job not in self._ranks:
            ranks = self._ranks[sub_job] = sorted(sub_job.tasks, key=lambda task: (task.role, task.order))
            self._rank.update((each, rank) for rank, each in enumerate(ranks))
        if not self._placed.by_leaf(sub_job):
            return -1
        ranks, rank = self._ranks[sub_job], self._rank[task]
        nearest = (side for distance in range(1, len(ranks)) for side in (rank - distance, rank + distance))
        leaves = (self._distances.leaf_of(ranks[side].node) for side in nearest if 0 <= side < len(ranks))
        return next((leaf for leaf in leaves if leaf >= 0), -1)

    def next_leaf(self, task: Task, sub_job: SubJob, nodes: Nodes, candidates: Bools) -> int:
        """The leaf for a task among the candidates: its neighbour's, else the best of those near it; -1: none."""
        leaves = nodes.pick(self._distances.of_row)
        neighbour = self.leaf_of_neighbour(task, sub_job)
        if neighbour >= 0 and bool((candidates & (leaves == neighbour)).any()):
            return neighbour
        rows = np.flatnonzero(candidates & (leaves >= 0))
        if not len(rows):
            return -1
        room = np.zeros(self._distances.count)
        np.add.at(room, leaves[rows], _tasks_that_fit(task, nodes, rows))
        choice = LeafChoice(self._distances, room, dict(self._placed.by_leaf(sub_job)))
        return choice.best(neighbour, sub_job.counts[Status.PENDING])


class LeafChoice:
    """Chooses so that a gang spans few leaves: at each fork of the tree the branch that holds the rest best."""

    def __init__(self, distances: LeafDistances, room: Floats, held: dict[int, int]):
        self._distances = distances
        self._room = room
        self._held = held

    def best(self, neighbour: int, count: int) -> int:
        """A leaf for the first of so many tasks, as near as can be to their neighbour's."""
        domain = self._nearest(neighbour)
        while not self._distances.is_leaf(domain):
            branches = [branch for branch in domain.children if self._room_in(branch)]
            domain = min(branches, key=lambda branch: self._preference(branch, count))
        return self._distances.place(domain)

    def _nearest(self, neighbour: int) -> Domain:
        """The lowest domain around the neighbour's leaf that has room."""
        for domain in self._distances.above(neighbour):
            if self._room_in(domain):
                return domain
        raise LookupError("no leaf has room")

    def _preference(self, branch: Domain, count: int) -> tuple[bool, bool, float]:
        """Where the gang is already; then where all the rest fits, as tightly as can be; else where most of it does."""
        below = self._distances.leaves_below(branch)
        holds = any(leaf in self._held for leaf in below.tolist())
        room = self._room_in(branch)
        return not holds, room < count, room if room >= count else -room

    def _room_in(self, domain: Domain) -> float:
        return float(self._room[self._distances.leaves_below(domain)].sum())


def _tasks_that_fit(task: Task, nodes: Nodes, rows: Ints) -> Floats:
    """How many tasks like this fit on each of some nodes now, at least one."""
    fitting: Floats = np.full(len(rows), np.inf)
    for dim, amount in task.request.items():
        if amount > 0:
            fitting = np.minimum(fitting, nodes.idle[dim, rows] // amount)
    return fitting.clip(1.0, 1e9)
