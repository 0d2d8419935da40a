"""Filters by the volumes of a pod: nodes from which all that are bound can be reached (spec 04 2.8, 2.11)."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from stromboli.api import names
from stromboli.api.types.storage import PersistentVolume
from stromboli.engine.placement.node_functions import Check, Nodes
from stromboli.model.cluster import Cluster
from stromboli.model.constraints.volume_claims import (
    nodes_in_zones,
    nodes_with_affinity,
    restricted_volumes,
)
from stromboli.model.node_columns import Bools, Columns
from stromboli.model.task import Task


class VolumeNodes:
    """Where the volumes of a task can be reached, as its claims and their volumes are now."""

    def __init__(self, cluster: Cluster):
        self._objects = cluster.objects

    def version(self, task: Task) -> int:
        return self._objects.version

    def zones(self, task: Task, nodes: Nodes) -> Iterator[Check]:
        """Nodes in the zones of all volumes."""
        yield Check(self._reaching(task, nodes, nodes_in_zones), names.VOLUME_ZONE_MISMATCH)

    def affinity(self, task: Task, nodes: Nodes) -> Iterator[Check]:
        """Nodes that match the node affinity of all volumes."""
        yield Check(self._reaching(task, nodes, nodes_with_affinity), names.VOLUME_AFFINITY_MISMATCH)

    def _reaching(
        self, task: Task, nodes: Nodes, reaching: Callable[[Columns, PersistentVolume], Bools]
    ) -> Bools:
        matching = nodes.all()
        for volume in restricted_volumes(self._objects, task):
            matching &= nodes.pick(reaching(nodes.columns, volume))
        return matching
