"""Scores of how full a node would be: least, most and evenly allocated (spec 04 3.3, 3.4).

All numbers are those of the pod view; arithmetic is that of Kubernetes, to the last truncation.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from stromboli.model.shape import (
    VIEW_CPU,
    VIEW_GPU,
    VIEW_MEMORY,
    VIEW_NONZERO_CPU,
    VIEW_NONZERO_MEMORY,
)

if TYPE_CHECKING:
    from stromboli.engine.placement.node_functions import Column, Nodes
    from stromboli.model.node_columns import Ints
    from stromboli.model.task import Task

Floats = NDArray[np.float64]
_WITHOUT_AND_WITH = np.array([0, 1])[:, None, None]
_NONZERO = slice(VIEW_NONZERO_CPU, VIEW_NONZERO_MEMORY + 1)


def least_allocated(task: Task, nodes: Nodes) -> Column:
    """100 on an empty node, 0 on a full one; the mean of cpu and memory."""
    return _mean_share(task, nodes, least=True)


def most_allocated(task: Task, nodes: Nodes) -> Column:
    """100 on a full node, 0 on an empty one; the mean of cpu and memory."""
    return _mean_share(task, nodes, least=False)


def _mean_share(task: Task, nodes: Nodes, least: bool) -> Ints:
    sizes = nodes.view_allocatable[_NONZERO]
    full = np.minimum(nodes.view[_NONZERO] + task.shape.incoming[_NONZERO, None], sizes)
    full = np.maximum(full, 0)  # a pod may request more than any sum can hold
    cpu, memory = (sizes - full if least else full) * 100 // np.maximum(sizes, 1)
    has_cpu, has_memory = np.minimum(sizes, 1)
    mean: Ints = (cpu + memory) // np.maximum(has_cpu + has_memory, 1)
    return mean


def asks_for_balance(task: Task) -> bool:
    """Best-effort pods are not balanced."""
    return bool(task.shape.incoming[VIEW_CPU : VIEW_GPU + 1].any())


def balanced_allocation(task: Task, nodes: Nodes) -> Column:
    """How much more evenly a node's resources would be used with the pod than without: 50 to 100."""
    rows = slice(VIEW_CPU, (VIEW_GPU if task.shape.incoming[VIEW_GPU] else VIEW_MEMORY) + 1)
    sizes = nodes.view_allocatable[rows]
    used = nodes.view[rows]
    incoming = task.shape.incoming[rows, None]
    before, after = _balance(used + incoming * _WITHOUT_AND_WITH, sizes)
    score: Ints = 50 + (50 + after - before) // 2
    return score


def _balance(used: Ints, sizes: Ints) -> Ints:
    """100 where all resources are used to the same fraction, less the more these fractions deviate.

    Of several states of the same nodes at once: (state, resource, node).
    """
    has = sizes > 0
    fractions = np.maximum(np.minimum(used / np.maximum(sizes, 1), 1.0), 0.0) * has
    deviation = (
        _of_two(fractions, has)
        if len(sizes) == 2
        else np.stack([_of_three(state, has) for state in fractions])
    )
    return ((1 - deviation) * 100).astype(np.int64)


def _of_two(fractions: Floats, has: NDArray[np.bool_]) -> Floats:
    deviation: Floats = np.abs(fractions[:, 0] - fractions[:, 1]) / 2 * (has[0] & has[1])
    return deviation


def _of_three(fractions: Floats, has: NDArray[np.bool_]) -> Floats:
    """The standard deviation; of two resources, where a node lacks the third, half the difference."""
    mean = ((fractions[0] + fractions[1]) + fractions[2]) / 3
    first, second, third = (fractions - mean) ** 2
    deviation = np.sqrt(((first + second) + third) / 3)
    for missing, left, right in ((0, 1, 2), (1, 0, 2), (2, 0, 1)):
        pair = ~has[missing] & has[left] & has[right]
        deviation = np.where(pair, np.abs((fractions[left] - fractions[right]) / 2), deviation)
    return np.where(has.sum(axis=0) < 2, 0.0, deviation)
