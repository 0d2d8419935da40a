"""The pools that a node sees: newest generation, completeness, validity (spec 04 2.12)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from stromboli.api.selectors import matches_node_term
from stromboli.model.devices.pools.pool_devices import Counters, PoolDevice, PoolId, PoolSlice, amount

if TYPE_CHECKING:
    from stromboli.api.types.pod import NodeSelector
    from stromboli.model.node_columns import Node


class NodePool:
    """The part of a pool that a node sees; nodes that see the same part share it."""

    __slots__ = (
        "__weakref__",
        "consumers",
        "counters",
        "devices",
        "has_binding_conditions",
        "id",
        "invalid",
        "is_incomplete",
        "positions",
        "reachable",
    )

    def __init__(
        self,
        id: PoolId,
        devices: tuple[PoolDevice, ...] = (),
        *,
        reachable: tuple[bool, ...] | None = None,
        counters: Counters = (),
        consumers: tuple[PoolDevice, ...] = (),
        is_incomplete: bool = False,
        invalid: str = "",
    ) -> None:
        self.id = id
        self.devices = devices
        """In the order in which they are tried."""
        self.reachable = reachable
        """Those that the node can use; None for all."""
        self.counters = counters
        """The values of the pool's shared counters."""
        self.consumers = consumers
        """Devices of the whole pool that consume the counters."""
        self.is_incomplete = is_incomplete
        """Whether slices are missing, so that no device is allocated."""
        self.invalid = invalid
        """Why no device is allocated; empty if the pool is valid."""
        self.has_binding_conditions = any(device.content.device.binding_conditions for device in devices)
        self.positions = {device.name: place for place, device in enumerate(devices)}

    @property
    def is_usable(self) -> bool:
        return not self.is_incomplete and not self.invalid


def selects(node: Node, name: str, all_nodes: bool, selector: NodeSelector | None) -> bool:
    """Whether a slice or a device with such fields is for a node."""
    if name:
        return node.name == name
    if all_nodes or selector is None:
        return all_nodes
    return any(matches_node_term(term, node.labels, node.name) for term in selector.node_selector_terms)


def reaches(device: PoolDevice, node: Node) -> bool:
    """Whether a device of a slice that leaves it to its devices is for a node."""
    content = device.content.device
    return selects(node, content.node_name, content.all_nodes, content.node_selector)


def is_relevant(slice: PoolSlice, node: Node) -> bool:
    """Whether a node sees a slice with devices."""
    spec = slice.spec
    if spec.node_name or spec.all_nodes or spec.node_selector is not None:
        return selects(node, spec.node_name, spec.all_nodes, spec.node_selector)
    return spec.per_device_node_selection and any(reaches(device, node) for device in slice.devices)


def newest(slices: Iterable[PoolSlice]) -> list[PoolSlice]:
    """The slices of the highest generation, by name."""
    by_name = sorted(slices, key=lambda slice: slice.name)
    generation = max((slice.generation for slice in by_name), default=0)
    return [slice for slice in by_name if slice.generation == generation]


class WholePool(Protocol):
    """The content of a pool beyond the slices that a node sees."""

    @property
    def id(self) -> PoolId: ...

    def slices_of(self, generation: int) -> int | None: ...

    def consuming(self, generation: int) -> Iterable[PoolSlice]: ...


def node_pool(pool: WholePool, seen: Sequence[PoolSlice], node: Node) -> NodePool | None:
    """The pool for a node that sees these slices of it (`newest`); None if they are being replaced."""
    id, generation, expected = pool.id, seen[0].generation, seen[0].spec.pool.resource_slice_count
    others: list[PoolSlice] = []
    if len(seen) != expected:
        present = pool.slices_of(generation)
        if present is None:
            return None
        if present != expected:
            return NodePool(id, is_incomplete=True)
        others = [slice for slice in pool.consuming(generation) if slice not in seen]
    invalid = _problem(seen, others)
    if invalid:
        return NodePool(id, invalid=invalid)
    given = [slice for slice in seen if not slice.has_counters]
    devices = tuple(device for slice in given for device in slice.devices)
    return NodePool(
        id,
        devices,
        reachable=_reachable(devices, node),
        counters=_counters(seen),
        consumers=tuple(
            device for slice in (*given, *others) for device in slice.devices if device.content.counters
        ),
    )


def _reachable(devices: Sequence[PoolDevice], node: Node) -> tuple[bool, ...] | None:
    if not any(device.slice.spec.per_device_node_selection for device in devices):
        return None
    return tuple(
        not device.slice.spec.per_device_node_selection or reaches(device, node) for device in devices
    )


def _counters(slices: Iterable[PoolSlice]) -> Counters:
    return tuple(
        ((counters.name, name), amount(counter.value).value)
        for slice in slices
        for counters in slice.spec.shared_counters
        for name, counter in counters.counters.items()
    )


def _problem(seen: Sequence[PoolSlice], others: Sequence[PoolSlice]) -> str:
    """Why no device of a pool may be allocated: duplicate names, missing counters."""
    names: set[str] = set()
    for device in (device for slice in seen if not slice.has_counters for device in slice.devices):
        if device.name in names:
            return f"duplicate device name {device.name}"
        names.add(device.name)
    sets: dict[str, Mapping[str, object]] = {}
    for counters in (counters for slice in seen for counters in slice.spec.shared_counters):
        if counters.name in sets:
            return f"duplicate counter set name {counters.name}"
        sets[counters.name] = counters.counters
    for device in (device for slice in (*seen, *others) for device in slice.devices):
        for consumption in device.content.device.consumes_counters:
            if consumption.counter_set not in sets:
                return f"counter set {consumption.counter_set} not found"
            for name in consumption.counters:
                if name not in sets[consumption.counter_set]:
                    return f"counter {name} not found in counter set {consumption.counter_set}"
    return ""
