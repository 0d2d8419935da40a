"""How full nodes would be with one more task, as a weighted mean over resources (spec 04 4, 5)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from stromboli.engine.placement.node_functions import Column, Nodes

if TYPE_CHECKING:
    from stromboli.model.task import Task


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
