"""From raw scores to 0..100 over the candidates, in whole numbers as Kubernetes divides (spec 04 0.5, 3.7)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from stromboli.engine.placement.node_functions import Column, Nodes
    from stromboli.model.task import Task


def up_to_best(task: Task, nodes: Nodes, raw: Column, candidates: Column) -> Column:
    """The highest becomes 100, the others in proportion."""
    most = max(0, int((raw * candidates).max()))
    return raw if most == 0 else raw.astype(np.int64) * 100 // most


def down_from_worst(task: Task, nodes: Nodes, raw: Column, candidates: Column) -> Column:
    """The highest becomes 0, none at all 100."""
    return 100 - up_to_best(task, nodes, raw, candidates)


def between_extremes(task: Task, nodes: Nodes, raw: Column, candidates: Column) -> Column:
    """The lowest becomes 0 and the highest 100; all 0 where they are the same."""
    chosen = raw[candidates]
    least, most = chosen.min(), chosen.max()
    if least == most:
        return nodes.zeros()
    scaled: Column = np.trunc(100.0 * ((raw - least) / (most - least)))
    return scaled
