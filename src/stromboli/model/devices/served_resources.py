"""Devices counted as what nodes have of extended resources that they do not list."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from stromboli.model.amounts import Amounts

if TYPE_CHECKING:
    from stromboli.model.cluster import Cluster
    from stromboli.model.node_columns import Node


class ServedResources:
    """Follows devices and nodes; nodes whose devices did not change are not looked at again."""

    def __init__(self) -> None:
        self._state: tuple[int, ...] = ()
        """The state in which devices were last counted."""
        self._position = 0
        """How many changes of pools there were then."""

    def update(self, cluster: Cluster) -> None:
        """Count devices of nodes that changed, over columns that are laid out."""
        devices, dims = cluster.devices, cluster.dims
        if not devices.extended and not self._state:
            return
        nodes = self._changed_nodes(cluster)
        searches = {
            dims.index[name]: devices.search_for(name) for name in devices.extended if name in dims.index
        }
        for node in nodes:
            served: Amounts = {
                dim: 1000 * devices.most_served(node, search) for dim, search in searches.items()
            }
            if served != node.served:
                node.served = served
                cluster.resize(node)

    def _changed_nodes(self, cluster: Cluster) -> Iterable[Node]:
        devices = cluster.devices
        state = (cluster.columns.layout, devices.objects_version, len(cluster.dims))
        changed = devices.changes.since(self._position) if state == self._state else None
        self._state, self._position = state, devices.changes.position
        if changed is None or (cluster.dirty.nodes and devices.pools.has_selected):
            return cluster.columns.nodes
        named = (cluster.nodes.get(name) for name in changed if isinstance(name, str))
        return [node for node in named if node is not None and node.row >= 0]
