"""Scores by the gradient of fragmentation, kept for each demand and node until the node changes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from stromboli.model.cards.gpu_demands import WHOLE, GpuDemand

if TYPE_CHECKING:
    from stromboli.engine.placement.node_functions import Floats
    from stromboli.model.cards.fragmentation import NodeFragmentation
    from stromboli.model.node_columns import Ints
    from stromboli.plugins.fgd.fgd_arguments import FgdArguments

ROUNDED_TO = 6
"""Digits of a score: fewer than float noise reaches, so that equal nodes are equal."""


class GradientScore:
    """Turns what is no longer lost into points, and adds those of the best fit."""

    def __init__(self, nodes: NodeFragmentation, arguments: FgdArguments):
        self.nodes = nodes
        self.arguments = arguments

    def points(self, gain: Floats) -> Floats:
        """A score from 0 to 100 for so many thousandths of a GPU that are no longer lost."""
        score = 100 * (1 / (1 + np.exp(-gain / 1000)))
        if self.arguments.published:
            return np.floor(score)
        rounded: Floats = np.round(score, ROUNDED_TO)
        return rounded

    def best_fit(self, demand: GpuDemand, rows: Ints, asked: Ints) -> Floats:
        """Points for how little of a node would be left, CPU and GPUs alike, measured by the largest node."""
        if self.arguments.published or not self.arguments.best_fit:
            return np.zeros(len(rows))
        gpus = self.nodes.gpus
        cpu, count = max(int(gpus.cpu_sizes.max(initial=0)), 1), max(int(gpus.count.max(initial=0)), 1)
        left_cpu = (gpus.cpu[rows] - demand.cpu) / cpu
        left_gpu = (gpus.free[rows].sum(axis=1) - asked * demand.gpus) / (WHOLE * count)
        points: Floats = np.round(100 * (1 - left_cpu / 2 - left_gpu / 2), ROUNDED_TO)
        return self.arguments.best_fit * points


class FragmentationScores:
    """The score of each node for a demand, and which of its GPUs is the best for a part of one."""

    def __init__(self, score: GradientScore, demand: GpuDemand):
        self._gradient = score
        self._nodes = score.nodes
        self._demand = demand
        self._position = -1
        self.values: Floats = np.zeros(0)
        self.cards: Ints = np.zeros(0, dtype=np.int64)

    def update(self) -> None:
        """Score the nodes again that changed since the last time."""
        self._nodes.update()
        gpus = self._nodes.gpus
        changed = gpus.changes.since(self._position)
        if changed is None:
            self.values = np.zeros(len(gpus.cpu))
            self.cards = np.zeros(len(gpus.cpu), dtype=np.int64)
            self._score(np.arange(len(gpus.cpu)))
        elif changed:
            self._score(np.fromiter(changed, dtype=np.int64))
        self._position = gpus.changes.position

    def _score(self, rows: Ints) -> None:
        gpus, demand = self._nodes.gpus, self._demand
        asked = gpus.shares_of(demand, rows)
        if demand.gpus == 1:
            best = self._best_gpus(rows, asked)
        else:
            best = self._points(rows, self._taken(gpus.free[rows], asked))
        self.values[rows] = best + self._gradient.best_fit(demand, rows, asked)

    def _points(self, rows: Ints, left: Ints) -> Floats:
        """Points of nodes on which so much of each GPU is left once the task is there."""
        cpu = self._nodes.gpus.cpu[rows] - self._demand.cpu
        return self._gradient.points(self._nodes.values[rows] - self._nodes.of(rows, cpu, left))

    def _taken(self, free: Ints, asked: Ints) -> Ints:
        """What is left of GPUs once so many of them gave so much, those with the least free first."""
        if not self._demand.gpus:
            return free
        places = np.arange(free.shape[1])
        fitting = free >= asked[:, None]
        order = np.argsort(np.where(fitting, free, 2 * WHOLE), axis=1, kind="stable")
        rank = np.empty_like(order)
        np.put_along_axis(rank, order, places[None, :], axis=1)
        return np.where(fitting & (rank < self._demand.gpus), free - asked[:, None], free)

    def _best_gpus(self, rows: Ints, asked: Ints) -> Floats:
        """The best score over the GPUs of nodes that have enough free; remembers which GPU it is."""
        free = self._nodes.gpus.free[rows]
        trials = (free >= asked[:, None]) & ~_repeats(free)
        node, card = np.nonzero(trials)
        scores = np.zeros(len(rows))
        if not len(node):
            return scores
        left = free[node]
        left[np.arange(len(node)), card] -= asked[node]
        points = self._points(rows[node], left)
        order = self._preference(node, card, points, free)
        first = order[np.flatnonzero(np.diff(node[order], prepend=-1))]
        scores[node[first]] = points[first]
        self.cards[rows[node[first]]] = card[first]
        return scores

    def _preference(self, node: Ints, card: Ints, points: Floats, free: Ints) -> Ints:
        """Trials node by node, the best GPU first: of equals the lowest or, in production, that with the least free."""
        if self._gradient.arguments.published:
            return np.lexsort((card, -points, node))
        return np.lexsort((card, free[node, card], -points, node))


def _repeats(free: Ints) -> np.ndarray[tuple[int, ...], np.dtype[np.bool_]]:
    """Where a GPU has as much free as one before it on the same node: it would come to the same."""
    width = free.shape[1]
    earlier = np.tri(width, k=-1, dtype=bool)
    same = (free[:, :, None] == free[:, None, :]) & earlier
    repeats: np.ndarray[tuple[int, ...], np.dtype[np.bool_]] = same.any(axis=2)
    return repeats
