"""How full nodes would be with one more task, as a weighted mean over resources (spec 04 4, 5)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from stromboli.engine.nodefunctions import Column, Nodes

if TYPE_CHECKING:
    from stromboli.model.task import Task


class Part(NamedTuple):
    """How much one resource counts, and whether a fuller node is the better one."""

    dim: int
    weight: int
    pack: bool = True


def filling(task: Task, nodes: Nodes, parts: Iterable[Part]) -> Column:
    """The mean over the parts of what would be used (or, where it is not to be packed, left), of 0 to 1.

    A node without a resource gets nothing for it; one where a resource would not fit gets nothing at all.
    The order of operations is part of the contract: equal scores must be equal to the last bit.
    """
    score, fitting, total = nodes.zeros(), nodes.all(), 0
    for dim, weight, pack in parts:
        total += weight
        if weight == 0:
            continue
        size = nodes.allocatable[dim].astype(np.float64)
        used = (nodes.used[dim] + int(task.request[dim])).astype(np.float64)
        there = size != 0
        fitting &= ~there | (used <= size)
        score += np.divide((used if pack else size - used) * weight, size, out=nodes.zeros(), where=there)
    if total > 0:
        score /= total
    return np.where(fitting, score, 0.0)
