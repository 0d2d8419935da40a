"""Kubernetes' score by storage, behind the feature gate StorageCapacityScoring: how full a node's storage would be.

It looks at every node for each pod with a waiting claim, which is why the gate is off (spec 04 2.11).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from stromboli.engine.placement.node_functions import Column, Nodes
from stromboli.model.volumes.claim_kind import size_of
from stromboli.model.volumes.task_volumes import volume_demand

if TYPE_CHECKING:
    from stromboli.model.cluster import Cluster
    from stromboli.model.task import Task
    from stromboli.model.volumes.claim_kind import DelayedClaim

FULL = 100
_SCALE = 10
"""Points of the shape have scores up to 10, nodes up to 100."""


class Point(NamedTuple):
    """At this utilization in percent, that score."""

    utilization: int
    score: int


class StorageScore:
    """Scores nodes by the share of their volumes or storage that the claims of a task would use."""

    def __init__(self, cluster: Cluster, shape: Sequence[Point]):
        self._cluster = cluster
        self._shape = shape

    def version(self, task: Task) -> int:
        return self._cluster.volumes.version

    def score(self, task: Task, nodes: Nodes) -> Column:
        cluster = self._cluster
        claims = volume_demand(cluster.volumes, cluster.objects, task).delayed
        rows = range(len(cluster.columns))
        return nodes.pick(np.array([self._of_node(claims, row) for row in rows], dtype=np.float64))

    def _of_node(self, claims: tuple[DelayedClaim, ...], row: int) -> int:
        volumes, objects = self._cluster.volumes, self._cluster.objects
        chosen = volumes.matching.choose(claims, row) or []
        static: dict[str, tuple[int, int]] = {}
        dynamic: dict[str, tuple[int, int]] = {}
        for claim, name in zip(claims, chosen, strict=False):
            of = claim.kind.storage_class
            volume = objects.volumes.get(name) if name else None
            if volume is not None:
                asked, size = static.get(of, (0, 0))
                static[of] = (asked + claim.kind.request, size + size_of(volume))
            elif (left := volumes.capacity.of_class(of).reported_for(row)) is not None:
                dynamic[of] = (dynamic.get(of, (0, 0))[0] + claim.kind.request, left)
        return self._mean(static or dynamic)

    def _mean(self, classes: dict[str, tuple[int, int]]) -> int:
        """The mean over classes, rounded half away from zero."""
        if not classes:
            return 0
        scores = [self._at(_utilization(asked, size)) for asked, size in classes.values()]
        return (2 * sum(scores) + len(scores)) // (2 * len(scores))

    def _at(self, utilization: int) -> int:
        """The value of the broken line, in whole numbers."""
        points = self._shape
        for index, point in enumerate(points):
            if utilization <= point.utilization:
                if index == 0:
                    return points[0].score * _SCALE
                low, high = points[index - 1], point
                rise = (high.score - low.score) * _SCALE * (utilization - low.utilization)
                step = abs(rise) // (high.utilization - low.utilization)
                return low.score * _SCALE + (step if rise >= 0 else -step)
        return points[-1].score * _SCALE if points else 0


def _utilization(asked: int, size: int) -> int:
    return FULL if size == 0 or asked > size else asked * FULL // size
