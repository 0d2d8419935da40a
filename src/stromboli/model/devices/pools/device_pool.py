"""A pool of devices: its slices, sorted by which nodes may see them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from stromboli.model.devices.pools.node_pools import NodePool, is_relevant, newest, reaches
from stromboli.model.devices.pools.node_pools import node_pool as make_node_pool

if TYPE_CHECKING:
    from stromboli.model.devices.pools.pool_devices import PoolId, PoolSlice
    from stromboli.model.node_columns import Node

_View = tuple[tuple[str, ...], tuple[bool, ...]]
"""The slices of a pool that a node sees, and which of the devices that choose nodes themselves reach it."""


class DevicePool:
    """The slices of a pool, and what nodes see of it."""

    __slots__ = ("_consuming", "_counters", "_generations", "_selected", "_views", "id", "named")

    def __init__(self, id: PoolId) -> None:
        self.id = id
        self.named: dict[str, dict[str, PoolSlice]] = {}
        """Slices for single nodes, by the name of the node."""
        self._selected: dict[str, PoolSlice] = {}
        """Slices for nodes that are selected in other ways."""
        self._counters: dict[str, PoolSlice] = {}
        """Slices with shared counters."""
        self._consuming: dict[str, PoolSlice] = {}
        """Slices with devices that take from counters."""
        self._generations: dict[int, int] = {}
        """How many slices there are of each generation."""
        self._views: dict[_View, NodePool | None] = {}

    def add(self, slice: PoolSlice) -> None:
        self._views.clear()
        self._table(slice)[slice.name] = slice
        if any(device.content.device.consumes_counters for device in slice.devices):
            self._consuming[slice.name] = slice
        self._generations[slice.generation] = self._generations.get(slice.generation, 0) + 1

    def remove(self, slice: PoolSlice) -> None:
        self._views.clear()
        table = self._table(slice)
        del table[slice.name]
        if not table:
            self.named.pop(slice.node_name, None)
        self._consuming.pop(slice.name, None)
        self._generations[slice.generation] -= 1
        if not self._generations[slice.generation]:
            del self._generations[slice.generation]

    def _table(self, slice: PoolSlice) -> dict[str, PoolSlice]:
        if slice.has_counters:
            return self._counters
        return self.named.setdefault(slice.node_name, {}) if slice.node_name else self._selected

    @property
    def is_empty(self) -> bool:
        return not self._generations

    @property
    def is_selected(self) -> bool:
        """Whether nodes may see its devices that no slice names."""
        return bool(self._selected)

    @property
    def has_counters(self) -> bool:
        return bool(self._counters)

    def slices_of(self, generation: int) -> int | None:
        """How many slices there are of a generation; None if there is a newer one."""
        return None if generation < max(self._generations) else self._generations.get(generation, 0)

    def consuming(self, generation: int) -> Iterator[PoolSlice]:
        """Slices of a generation with devices that take from counters."""
        return (slice for slice in self._consuming.values() if slice.generation == generation)

    def view(self, node: Node, selected: Iterable[PoolSlice] = ()) -> NodePool | None:
        """What a node sees of the pool, given the slices that it may see without being named; None if nothing."""
        named = self.named.get(node.name, {}).values()
        relevant = (slice for slice in selected if is_relevant(slice, node))
        seen = newest([*named, *relevant, *self._counters.values()])
        if not seen:
            return None
        choosing = [slice for slice in seen if slice.spec.per_device_node_selection]
        reached = tuple(reaches(device, node) for slice in choosing for device in slice.devices)
        key = (tuple(slice.name for slice in seen), reached)
        if key not in self._views:
            self._views[key] = make_node_pool(self, seen, node)
        return self._views[key]
