"""Helpers for scores: normalisation over the candidates, and utilisation of nodes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from stromboli.engine.placement.node_functions import Column, Nodes

if TYPE_CHECKING:
    from stromboli.model.node_columns import Ints
    from stromboli.model.task import Task


# -- from raw scores to 0..100, in whole numbers as Kubernetes divides (spec 04 0.5, 3.7)


class InProportion:
    """The highest becomes 100, the others in proportion; in reverse the highest becomes 0, and none at all 100.

    Candidates change more often than their highest score does, so the last result is kept.
    """

    def __init__(self, reverse: bool = False):
        self._reverse = reverse
        self._raw: Column | None = None
        """The scores of the last call; columns of scores are read-only."""
        self._highest = 0
        """The highest score of any node, candidate or not."""
        self._best: Ints = np.zeros(0, dtype=np.int64)
        """The places of the nodes that have it."""
        self._most = -1
        """The highest score of a candidate that the result belongs to; -1: there is no result."""
        self._result: Column = np.zeros(0)

    def __call__(self, task: Task, nodes: Nodes, raw: Column, candidates: Column) -> Column:
        if raw is not self._raw:
            self._raw, self._most = raw, -1
            self._highest = max(0, int(raw.max(initial=0)))
            self._best = np.flatnonzero(raw >= self._highest)
        most = self._highest if candidates[self._best].any() else max(0, int((raw * candidates).max()))
        if most != self._most:
            scaled = raw if most == 0 else raw.astype(np.int64) * 100 // most
            self._most, self._result = most, (100 - scaled if self._reverse else scaled).astype(np.float64)
        return self._result


def between_extremes(task: Task, nodes: Nodes, raw: Column, candidates: Column) -> Column:
    """The lowest becomes 0 and the highest 100; all 0 where they are the same."""
    chosen = raw[candidates]
    least, most = chosen.min(), chosen.max()
    if least == most:
        return nodes.zeros()
    scaled: Column = np.trunc(100.0 * ((raw - least) / (most - least)))
    return scaled


# -- how full nodes would be with one more task, as a weighted mean over resources (spec 04 4, 5)


class Part(NamedTuple):
    """How much one resource counts, and whether a fuller node is the better one."""

    dim: int
    weight: int
    pack: bool = True


def utilisation(task: Task, nodes: Nodes, parts: Iterable[Part]) -> Column:
    """The mean over the parts of what would be used (or, where it is not to be packed, left), of 0 to 1.

    A node without a resource gets nothing for it; one where a resource would not fit gets nothing at all.
    The order of operations is part of the contract: equal scores must be equal to the last bit.
    """
    score, fitting, total = nodes.zeros(), nodes.all(), 0
    for dim, weight, pack in parts:
        total += weight
        if weight == 0:
            continue
        size, used = nodes.allocatable[dim], nodes.used[dim] + int(task.request[dim])
        there = size != 0
        fitting &= (used <= size) | ~there
        part = (used if pack else size - used) * float(weight) / np.where(there, size, 1)
        score += part * there
    if total > 0:
        score /= total
    score *= fitting
    return score
