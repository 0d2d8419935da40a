"""Slices and their devices, with amounts parsed and what equal devices have in common shared."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple
from weakref import WeakValueDictionary

import msgspec

from stromboli.api.cel.device_selectors import device_value
from stromboli.api.cel.expression import EvaluationError
from stromboli.model.devices.pools.consumable_capacity import Capacity, read_capacity
from stromboli.model.devices.pools.quantities import amount

if TYPE_CHECKING:
    from stromboli.api.types.devices import Device, DeviceTaint, ResourceSlice

_BLOCKING = ("NoSchedule", "NoExecute")
Counters = tuple[tuple[tuple[str, str], int], ...]
"""Amounts in billionths by counter set and counter."""


class PoolId(NamedTuple):
    driver: str
    pool: str


class DeviceContent:
    """All of a device but its name; equal devices of a driver share it."""

    __slots__ = ("__weakref__", "_value", "capacities", "counters", "device", "driver", "number", "taints")

    def __init__(self, driver: str, device: Device, number: int) -> None:
        self.driver = driver
        self.device = device
        self.number = number
        """Different for different contents."""
        self.capacities: dict[str, Capacity] = {
            name: read_capacity(capacity) for name, capacity in device.capacity.items()
        }
        consumed: dict[tuple[str, str], int] = {}
        for consumption in device.consumes_counters:
            for name, counter in consumption.counters.items():
                key = (consumption.counter_set, name)
                consumed[key] = consumed.get(key, 0) + amount(counter.value).value
        self.counters: Counters = tuple(consumed.items())
        self.taints: tuple[DeviceTaint, ...] = tuple(
            taint for taint in device.taints if taint.effect in _BLOCKING
        )
        """Those that keep claims off which do not tolerate them."""
        self._value: dict[str, Any] | EvaluationError | None = None

    @property
    def value(self) -> dict[str, Any]:
        """What `device` is for selectors; EvaluationError if it has no value."""
        if self._value is None:
            try:
                self._value = device_value(self.driver, self.device)
            except EvaluationError as error:
                self._value = error
        if isinstance(self._value, EvaluationError):
            raise self._value
        return self._value


class PoolDevice:
    """A device of a slice."""

    __slots__ = ("content", "name", "slice")

    def __init__(self, name: str, content: DeviceContent, slice: PoolSlice) -> None:
        self.name = name
        self.content = content
        self.slice = slice


class PoolSlice:
    """A ResourceSlice as part of its pool."""

    __slots__ = ("devices", "generation", "has_counters", "name", "pool", "spec")

    def __init__(self, slice: ResourceSlice, contents: ContentTable) -> None:
        spec = self.spec = slice.spec
        self.name = slice.name
        self.pool = PoolId(spec.driver, spec.pool.name)
        self.generation = spec.pool.generation
        self.has_counters = bool(spec.shared_counters)
        """Whether it has the counters of its pool; then its devices are not given out."""
        self.devices: tuple[PoolDevice, ...] = tuple(
            PoolDevice(device.name, contents.content(spec.driver, device), self) for device in spec.devices
        )

    @property
    def node_name(self) -> str:
        """The node that alone sees it; empty if there may be several."""
        return "" if self.has_counters else self.spec.node_name


class ContentTable:
    """Shares the contents of equal devices."""

    def __init__(self) -> None:
        self._contents: WeakValueDictionary[bytes, DeviceContent] = WeakValueDictionary()
        self._last = 0
        self._encode = msgspec.msgpack.Encoder(order="deterministic").encode

    def content(self, driver: str, device: Device) -> DeviceContent:
        nameless = msgspec.structs.replace(device, name="")
        key = self._encode((driver, nameless))
        content = self._contents.get(key)
        if content is None:
            self._last += 1
            content = self._contents[key] = DeviceContent(driver, nameless, self._last)
        return content
