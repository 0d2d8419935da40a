"""All ResourceSlices by pool and by node; a change of a slice costs what the slice is seen by."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from stromboli.api.errors import BadObject
from stromboli.api.resources.quantity import QuantityError
from stromboli.model.devices.pools.device_pool import DevicePool
from stromboli.model.devices.pools.node_pools import NodePool
from stromboli.model.devices.pools.pool_devices import ContentTable, PoolId, PoolSlice
from stromboli.model.devices.pools.quantities import amount
from stromboli.model.devices.pools.reach import ReachIndex
from stromboli.model.node_columns import Node

if TYPE_CHECKING:
    from stromboli.api.types.devices import ResourceSlice

_NO_NODE = Node("")


class PoolIndex:
    """Which devices there are for which node."""

    def __init__(self) -> None:
        self._contents = ContentTable()
        self._slices: dict[str, PoolSlice] = {}
        self._pools: dict[PoolId, DevicePool] = {}
        self._named: dict[str, dict[PoolId, None]] = {}
        """Pools with a slice for a node, by the name of the node."""
        self._selected: dict[PoolId, None] = {}
        """Pools that nodes may see without being named."""
        self._reach = ReachIndex()
        """The slices of these pools that name no node."""
        self._counted: dict[PoolId, None] = {}
        """Those of these pools that have counters, which every node sees."""
        self._broken: dict[PoolId, NodePool] = {}
        """Pools with counters that show every node that they cannot be used."""
        self._shared_version = 0
        self._seen: dict[str, tuple[int, dict[str, str], tuple[NodePool, ...]]] = {}
        """What nodes see, as long as nothing that they see changes."""
        self._seeing: dict[PoolId, set[str]] = {}
        """Names of nodes that were seen to see such a pool."""

    def put(self, slice: ResourceSlice) -> None:
        """Add a slice or replace the one of its name; BadObject if an amount in it is none."""
        try:
            parsed = PoolSlice(slice, self._contents)
            for counters in slice.spec.shared_counters:
                for counter in counters.counters.values():
                    amount(counter.value)
        except QuantityError as error:
            raise BadObject("spec", str(error)) from None
        old = self._slices.get(slice.name)
        if old is not None:
            self._remove(old)
        self._slices[slice.name] = parsed
        self._pools.setdefault(parsed.pool, DevicePool(parsed.pool)).add(parsed)
        if parsed.node_name:
            self._named.setdefault(parsed.node_name, {})[parsed.pool] = None
        elif not parsed.has_counters:
            self._reach.add(parsed)
        self._changed(parsed.pool)

    def drop(self, name: str) -> None:
        """Remove a slice, if there is one of this name."""
        old = self._slices.pop(name, None)
        if old is not None:
            self._remove(old)

    def _remove(self, slice: PoolSlice) -> None:
        pool = self._pools[slice.pool]
        self._forget(pool)
        pool.remove(slice)
        if slice.node_name and slice.node_name not in pool.named:
            named = self._named[slice.node_name]
            del named[slice.pool]
            if not named:
                del self._named[slice.node_name]
        if not slice.node_name and not slice.has_counters:
            self._reach.remove(slice)
        self._changed(slice.pool)
        if pool.is_empty:
            del self._pools[slice.pool]

    def _changed(self, id: PoolId) -> None:
        """Look at a pool anew."""
        pool = self._pools[id]
        self._forget(pool)
        self._selected.pop(id, None)
        self._broken.pop(id, None)
        self._counted.pop(id, None)
        self._seeing.pop(id, None)
        if pool.is_selected:
            self._selected[id] = None
            if pool.has_counters:
                self._counted[id] = None
        elif pool.has_counters:
            view = pool.view(_NO_NODE)
            if view is not None and not view.is_usable:
                self._broken[id] = view
        self._forget(pool)

    def _forget(self, pool: DevicePool) -> None:
        """Forget what nodes see that see a pool."""
        if pool.id in self._selected or pool.id in self._broken:
            self._shared_version += 1
        if self._seen:
            for name in pool.named:
                self._seen.pop(name, None)

    def nodes_seeing(self, id: PoolId) -> Collection[str]:
        """The names of nodes that see a pool, of those that were ever asked what they see."""
        return {*self.nodes_naming(id), *self._seeing.get(id, ())}

    def nodes_naming(self, id: PoolId) -> Collection[str]:
        """The names of nodes for which a pool has slices."""
        pool = self._pools.get(id)
        return pool.named.keys() if pool is not None else ()

    @property
    def has_selected(self) -> bool:
        """Whether there are pools that nodes may see without being named."""
        return bool(self._selected)

    def is_selected(self, id: PoolId) -> bool:
        """Whether nodes may see a pool that it does not name."""
        return id in self._selected

    def pools_of(self, node: Node) -> tuple[NodePool, ...]:
        """The pools that a node sees, in the order in which their devices are tried."""
        known = self._seen.get(node.name)
        if known is not None and known[0] == self._shared_version and known[1] is node.labels:
            return known[2]
        views = self._views(node)
        pools = tuple(sorted(views, key=lambda pool: (pool.has_binding_conditions, pool.id)))
        self._seen[node.name] = (self._shared_version, node.labels, pools)
        for pool in pools:
            if pool.id in self._selected:
                self._seeing.setdefault(pool.id, set()).add(node.name)
        return pools

    def _views(self, node: Node) -> list[NodePool]:
        selected: dict[PoolId, list[PoolSlice]] = {}
        for slice in self._reach.slices_for(node):
            selected.setdefault(slice.pool, []).append(slice)
        ids = {**self._named.get(node.name, {}), **dict.fromkeys(selected), **self._counted}
        views = (self._pools[id].view(node, selected.get(id, ())) for id in ids)
        broken = (view for id, view in self._broken.items() if id not in ids)
        return [*(view for view in views if view is not None), *broken]
