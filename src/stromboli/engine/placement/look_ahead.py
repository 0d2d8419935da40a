"""What nodes will be with some more tasks of one shape on them.

Numbers of a node change mostly because one more task of the same shape was put there. So nodes are evaluated some steps
ahead (as they are, with one more, with two more ...), and such a change costs one look-up.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from stromboli.engine.placement.node_functions import Bools, Floats
    from stromboli.model.node_columns import Ints

MAX_STEPS = 16
"""Steps that nodes are evaluated ahead, at most."""
MAX_STEPS_AT_ONCE = 32768
"""How many steps of nodes are evaluated together when there are many."""
FEW_AT_ONCE = 1024
"""The same for the nodes of a domain, which are evaluated because tasks are about to be placed there."""


def steps_ahead(nodes: int, at_once: int | None = None) -> int:
    """How many steps ahead so many nodes are evaluated."""
    return max(2, min(MAX_STEPS, (at_once or MAX_STEPS_AT_ONCE) // max(nodes, 1)))


class LookAhead:
    """What nodes will be worth, and whether a task will fit, with a few more tasks of the same shape on them."""

    def __init__(self, nodes: int):
        self._now: Bools = np.zeros((MAX_STEPS, nodes), dtype=bool)
        self._later: Bools = np.zeros((MAX_STEPS, nodes), dtype=bool)
        self._scores: Floats = np.zeros((MAX_STEPS, nodes))
        self._steps = np.zeros(nodes, dtype=np.int64)
        """How many tasks were put on each node since it was evaluated."""
        self._ahead = np.zeros(nodes, dtype=np.int64)
        """For how many tasks it was evaluated; 0: it changed otherwise since."""

    def put(self, places: Ints, ahead: int, now: Bools, later: Bools, scores: Floats) -> None:
        """Nodes as they are and for the steps that follow; one after the other in each column."""
        self._now[:ahead, places] = now.reshape(ahead, len(places))
        self._later[:ahead, places] = later.reshape(ahead, len(places))
        self._scores[:ahead, places] = scores.reshape(ahead, len(places))
        self._steps[places] = 0
        self._ahead[places] = ahead

    def forget(self, place: int | Ints) -> None:
        """Some nodes changed otherwise."""
        self._ahead[place] = 0

    def advance(self, place: int) -> tuple[bool, bool, float] | None:
        """What a node is with one more task, if that is known: whether the next fits now, or later, and its score."""
        step = self._steps[place] + 1
        if step >= self._ahead[place]:
            return None
        self._steps[place] = step
        return self._now[step, place], self._later[step, place], self._scores[step, place]
