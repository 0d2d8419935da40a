"""The devices that claims hold: allocated whole, or shared with the capacity that each share consumes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from stromboli.api.resources.quantity import QuantityError
from stromboli.model.devices.pools.pool_devices import PoolId, amount

if TYPE_CHECKING:
    from stromboli.api.types.devices import AllocatedDevice, AllocationResult
    from stromboli.model.devices.pools.node_pools import NodePool

UseKey = tuple[tuple[object, ...], ...]
"""Devices in use of a pool, by position: whole ones, shared ones, and those that consume counters."""


class Shares:
    """The number of shares of a device, and the capacity that all shares consume."""

    __slots__ = ("consumed", "count")

    def __init__(self) -> None:
        self.count = 0
        self.consumed: dict[str, int] = {}
        """In billionths by the name of the capacity."""

    def change(self, result: AllocatedDevice, sign: int) -> None:
        self.count += sign
        for name, quantity in result.consumed_capacity.items():
            left = self.consumed.get(name, 0) + sign * _billionths(quantity)
            self.consumed[name] = left
            if not left:
                del self.consumed[name]


def _billionths(quantity: str | int | float) -> int:
    try:
        return amount(quantity).value
    except QuantityError:
        return 0  # an API server accepts none such


class PoolUse:
    """What is in use of a pool, by the names of devices."""

    __slots__ = ("_key", "_key_of", "shared", "whole")

    def __init__(self) -> None:
        self.whole: dict[str, int] = {}
        """The number of claims that hold an exclusive device: more than one only if schedulers conflicted."""
        self.shared: dict[str, Shares] = {}
        self._key: UseKey = ()
        self._key_of: NodePool | None = None

    def change(self, result: AllocatedDevice, sign: int) -> None:
        self._key_of = None
        name = result.device
        if result.share_id:
            shares = self.shared.setdefault(name, Shares())
            shares.change(result, sign)
            if not shares.count:
                del self.shared[name]
            return
        self.whole[name] = self.whole.get(name, 0) + sign
        if not self.whole[name]:
            del self.whole[name]

    def holds(self, name: str) -> bool:
        return name in self.whole or name in self.shared

    def key(self, pool: NodePool) -> UseKey:
        """The devices in use among those that a node sees, by position: equal for equal pools in equal use."""
        if self._key_of is not pool:
            self._key_of, self._key = pool, self._make_key(pool)
        return self._key

    def _make_key(self, pool: NodePool) -> UseKey:
        places = pool.positions
        whole = sorted(places[name] for name in _common(self.whole, places))
        shared = sorted(
            (places[name], tuple(sorted(self.shared[name].consumed.items())))
            for name in _common(self.shared, places)
        )
        counted = tuple(self.holds(device.name) for device in pool.consumers)
        return (tuple(whole), tuple(shared), counted)


def _common(used: Mapping[str, object], seen: Mapping[str, int]) -> Iterator[str]:
    """The names in both, found by iterating over the shorter."""
    shorter, longer = (used, seen) if len(used) < len(seen) else (seen, used)
    return (name for name in shorter if name in longer)


class DevicesInUse:
    """All allocated devices; administrative access does not count as use."""

    def __init__(self) -> None:
        self._pools: dict[PoolId, PoolUse] = {}

    def add(self, allocation: AllocationResult) -> None:
        self._change(allocation, 1)

    def remove(self, allocation: AllocationResult) -> None:
        self._change(allocation, -1)

    def _change(self, allocation: AllocationResult, sign: int) -> None:
        for result in allocation.devices.results:
            if result.admin_access:
                continue
            id = PoolId(result.driver, result.pool)
            use = self._pools.setdefault(id, PoolUse())
            use.change(result, sign)
            if not use.whole and not use.shared:
                del self._pools[id]

    def of(self, pool: PoolId) -> PoolUse | None:
        """What is in use of a pool; None if nothing."""
        return self._pools.get(pool)
