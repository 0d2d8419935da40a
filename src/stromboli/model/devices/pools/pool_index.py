"""All ResourceSlices by pool and by node; the cost of a changed slice follows from the nodes that see it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import TYPE_CHECKING

from stromboli.api import names
from stromboli.api.errors import BadObject
from stromboli.api.resources.quantity import QuantityError
from stromboli.model.devices.pools.node_pools import NodePool, is_relevant, newest, reaches
from stromboli.model.devices.pools.node_pools import node_pool as make_node_pool
from stromboli.model.devices.pools.pool_devices import ContentTable, PoolId, PoolSlice, amount
from stromboli.model.feed import Feed, Topic
from stromboli.model.node_columns import Node

if TYPE_CHECKING:
    from stromboli.api.types.devices import ResourceSlice
    from stromboli.api.types.pod import NodeSelector


_NO_NODE = Node("")


class PoolIndex:
    """The devices for each node."""

    def __init__(self, feed: Feed | None = None) -> None:
        self.shared: Topic[PoolId] = (feed if feed is not None else Feed()).topic()
        """Pools that nodes see without being named, or that show every node that they cannot be used."""
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
        self._seen: dict[str, tuple[int, dict[str, str], tuple[NodePool, ...]]] = {}
        """Cached views of nodes, until a pool that they see changes."""
        self._seeing: dict[PoolId, set[str]] = {}
        """Names of nodes that saw such a pool."""

    def put(self, slice: ResourceSlice) -> None:
        """Add a slice or replace the one of its name; raises BadObject if an amount in it is invalid."""
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
        """Update a pool."""
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
        """Drop the cached views of nodes that see a pool."""
        if pool.id in self._selected or pool.id in self._broken:
            self.shared.note(pool.id)
        if self._seen:
            for name in pool.named:
                self._seen.pop(name, None)

    def nodes_seeing(self, id: PoolId) -> Collection[str]:
        """The names of nodes that see a pool, among those whose view was ever computed."""
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
        if known is not None and known[0] == self.shared.generation and known[1] is node.labels:
            return known[2]
        views = self._views(node)
        pools = tuple(sorted(views, key=lambda pool: (pool.has_binding_conditions, pool.id)))
        self._seen[node.name] = (self.shared.generation, node.labels, pools)
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


# -- a pool of devices: its slices, sorted by which nodes may see them


_View = tuple[tuple[str, ...], tuple[bool, ...]]
"""The slices of a pool that a node sees, and those of the devices with their own node selection that it sees."""


class DevicePool:
    """The slices of a pool, and the views of nodes."""

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
        """Slices with devices that consume counters."""
        self._generations: dict[int, int] = {}
        """The number of slices of each generation."""
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
        """The number of slices of a generation; None if there is a newer one."""
        return None if generation < max(self._generations) else self._generations.get(generation, 0)

    def consuming(self, generation: int) -> Iterator[PoolSlice]:
        """Slices of a generation with devices that consume counters."""
        return (slice for slice in self._consuming.values() if slice.generation == generation)

    def view(self, node: Node, selected: Iterable[PoolSlice] = ()) -> NodePool | None:
        """The view of a node on the pool, given the slices that it may see without being named; None if empty."""
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


# -- the slices that a node may see, found by its labels, without comparing every node with every slice


Labels = frozenset[tuple[str, str]]
"""Labels of which a node needs one; its name counts as a label."""


class ReachIndex:
    """Slices that do not name a node, by the labels of which a node needs one to see them."""

    def __init__(self) -> None:
        self._labelled: dict[tuple[str, str], dict[PoolSlice, None]] = {}
        self._everywhere: dict[PoolSlice, None] = {}
        """Slices that any node may see."""

    def add(self, slice: PoolSlice) -> None:
        labels = needed_labels(slice)
        if labels is None:
            self._everywhere[slice] = None
            return
        for label in labels:
            self._labelled.setdefault(label, {})[slice] = None

    def remove(self, slice: PoolSlice) -> None:
        self._everywhere.pop(slice, None)
        for label in needed_labels(slice) or ():
            slices = self._labelled[label]
            del slices[slice]
            if not slices:
                del self._labelled[label]

    def slices_for(self, node: Node) -> Iterable[PoolSlice]:
        """The slices that a node may see, each once."""
        found = dict(self._everywhere)
        if self._labelled:
            for label in ((names.NODE_NAME_FIELD, node.name), *node.labels.items()):
                found |= self._labelled.get(label, {})
        return found


def needed_labels(slice: PoolSlice) -> Labels | None:
    """Labels of which a node needs one to see a slice; None if it may see it without."""
    spec = slice.spec
    if not spec.per_device_node_selection:
        return _labels_of(spec.node_name, spec.node_selector)
    needed: set[tuple[str, str]] = set()
    for device in spec.devices:
        labels = _labels_of(device.node_name, device.node_selector)
        if labels is None:
            return None
        needed |= labels
    return frozenset(needed)


def _labels_of(node_name: str, selector: NodeSelector | None) -> Labels | None:
    if node_name:
        return frozenset({(names.NODE_NAME_FIELD, node_name)})
    needed: set[tuple[str, str]] = set()
    for term in selector.node_selector_terms if selector is not None else ():
        requirements = (*term.match_fields, *term.match_expressions)
        values = next((each for each in requirements if each.operator == "In"), None)
        if values is None:
            return None
        needed |= {(values.key, value) for value in values.values}
    return frozenset(needed) if selector is not None else None
