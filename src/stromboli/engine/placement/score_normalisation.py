"""From raw scores to 0..100 over the candidates, in whole numbers as Kubernetes divides (spec 04 0.5, 3.7)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from stromboli.engine.placement.node_functions import Column, Nodes
    from stromboli.model.node_columns import Ints
    from stromboli.model.task import Task


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
