"""The position of a gang in the tree: how close leaves are to its domain, its tasks in each, the leaf for a rank.

Collective operations of a gang mostly pass data from each rank to the next. If ranks fill one leaf before the next, all
such pairs share a switch except those at the borders between leaves.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from stromboli.engine.placement.node_fit import slots
from stromboli.model.status import Status

if TYPE_CHECKING:
    from stromboli.engine.placement.node_functions import Bools, Floats, Nodes
    from stromboli.model.cluster import Change
    from stromboli.model.job import SubJob
    from stromboli.model.node_columns import Ints, Node
    from stromboli.model.task import Task
    from stromboli.model.topology.domain import Domain
    from stromboli.model.topology.hyper_node_tree import HyperNodeTree

MAX_TASKS = 10**9
"""Maximum number of tasks that fit on a node, for tasks that request nothing."""


class LeafDistances:
    """The HyperNodes of the lowest tier, which node is in which, and how close each is to a domain."""

    def __init__(self, tree: HyperNodeTree):
        self._tiers, self._top, self._lookup = tree.tiers, tree.top, tree.lookup
        self.count = len(tree.lookup.places(tree.tiers[0]))
        """The number of leaves; they come first among all domains."""
        self.of_row: Ints = tree.lookup.of_tier(tree.tiers[0])
        """The leaf of each node by its place; -1: it is in none."""
        self._below: dict[Domain, Ints] = {}
        self._closeness: dict[Domain, Floats] = {}

    def leaf_of(self, node: Node | None) -> int:
        """The leaf of a node by its place; -1: it is in none."""
        return int(self.of_row[node.row]) if node is not None and node.row >= 0 else -1

    def is_leaf(self, domain: Domain) -> bool:
        """Whether a domain is of the lowest tier."""
        return domain.tier == self._tiers[0]

    def place(self, leaf: Domain) -> int:
        """The place of a leaf among all."""
        return self._lookup.place[leaf]

    def above(self, leaf: int) -> Iterator[Domain]:
        """A leaf and all domains around it, or just the top if there is no leaf at this place."""
        return self._lookup.domains[leaf].ancestors() if leaf >= 0 else iter([self._top])

    def closeness(self, domain: Domain) -> Floats:
        """The closeness of each leaf, from 1 down to 0 by the tier of the lowest common domain; last, 0 for no leaf."""
        known = self._closeness.get(domain)
        if known is None:
            known = np.zeros(self.count + 1)
            for ancestor in reversed(list(domain.ancestors())):
                known[self.leaves_below(ancestor)] = self._score(ancestor.tier)
            if self.is_leaf(domain):
                known[self.place(domain)] = 1.0
            self._closeness[domain] = known
        return known

    def _score(self, tier: int) -> float:
        lowest, highest = self._tiers[0], self._tiers[-1]
        if lowest == highest:
            return 1.0
        return (highest - tier) / (highest - lowest) if lowest <= tier <= highest else 0.0

    def leaves_below(self, domain: Domain) -> Ints:
        """The leaves at and below a domain."""
        known = self._below.get(domain)
        if known is None:
            own = [self.place(domain)] if self.is_leaf(domain) else []
            parts = [np.array(own, dtype=np.int64), *map(self.leaves_below, domain.children)]
            known = self._below[domain] = np.concatenate(parts)
        return known


# -- tasks of a sub-group in each leaf, as a session places them


class PlacedTasks:
    """The tasks of each sub-group by leaf: counted at first use, then updated by moves."""

    def __init__(self, distances: LeafDistances):
        self._distances = distances
        self._counts: dict[SubJob, dict[int, int]] = {}

    def by_leaf(self, sub_job: SubJob) -> tuple[tuple[int, int], ...]:
        """The number of tasks in each leaf that has any, as a value that can be compared."""
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


# -- the leaf for a pod of a gang, near the pod with the previous index


class RankNeighbours:
    """Tasks of sub-groups in order of role and index, as of a session."""

    def __init__(self, distances: LeafDistances, placed: PlacedTasks):
        self._distances = distances
        self._placed = placed
        self._ranks: dict[SubJob, list[Task]] = {}
        self._rank: dict[Task, int] = {}

    def leaf_of_neighbour(self, task: Task, sub_job: SubJob) -> int:
        """The leaf of the placed task with the nearest rank, of two the lower; -1: no task is placed in a leaf."""
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
        free = np.zeros(self._distances.count)
        np.add.at(free, leaves[rows], _tasks_that_fit(task, nodes, rows))
        choice = LeafChoice(self._distances, free, dict(self._placed.by_leaf(sub_job)))
        return choice.best(neighbour, sub_job.counts[Status.PENDING])


class LeafChoice:
    """Chooses a leaf so that a gang spans few: at each fork the branch in which the remaining tasks fit best."""

    def __init__(self, distances: LeafDistances, free: Floats, held: dict[int, int]):
        self._distances = distances
        self._free = free
        self._held = held

    def best(self, neighbour: int, count: int) -> int:
        """A leaf for the first of a number of tasks, as near as possible to their neighbour's."""
        domain = self._nearest(neighbour)
        while not self._distances.is_leaf(domain):
            branches = [branch for branch in domain.children if self._free_in(branch)]
            domain = min(branches, key=lambda branch: self._preference(branch, count))
        return self._distances.place(domain)

    def _nearest(self, neighbour: int) -> Domain:
        """The lowest domain with capacity that contains the neighbour's leaf."""
        for domain in self._distances.above(neighbour):
            if self._free_in(domain):
                return domain
        raise LookupError("no leaf has capacity")

    def _preference(self, branch: Domain, count: int) -> tuple[bool, bool, float]:
        """First branches with tasks of the gang, then the fullest in which all tasks fit, then the freest."""
        below = self._distances.leaves_below(branch)
        holds = any(leaf in self._held for leaf in below.tolist())
        free = self._free_in(branch)
        return not holds, free < count, free if free >= count else -free

    def _free_in(self, domain: Domain) -> float:
        return float(self._free[self._distances.leaves_below(domain)].sum())


def _tasks_that_fit(task: Task, nodes: Nodes, rows: Ints) -> Floats:
    """How many tasks like this one fit on each of some nodes now, at least one."""
    return slots(task.shape, nodes.idle[:, rows], MAX_TASKS).clip(1).astype(np.float64)
