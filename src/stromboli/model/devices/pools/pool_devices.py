"""Slices and their devices, with amounts parsed. Equal devices share what they have in common."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple
from weakref import WeakValueDictionary

import msgspec

from stromboli.api.cel.device_selectors import device_value
from stromboli.api.cel.expression import EvaluationError
from stromboli.api.resources.quantity import exact, format_bytes
from stromboli.api.types.devices import CapacityRequestPolicy, DeviceCapacity
from stromboli.api.types.meta import Quantity

if TYPE_CHECKING:
    from stromboli.api.types.devices import Device, DeviceTaint, ResourceSlice


# -- amounts of capacity and counters as whole numbers, exact to a billionth of a unit


UNIT = 10**9


class Amount(NamedTuple):
    """An amount, with the text that it is written as."""

    value: int
    """In billionths, rounded up."""
    text: Quantity

    @property
    def whole(self) -> int:
        """In units, rounded up."""
        return -(-self.value // UNIT)


def amount(quantity: Quantity) -> Amount:
    """The amount of a quantity; raises QuantityError if it is invalid."""
    return Amount(math.ceil(exact(quantity) * UNIT), quantity)


def amount_of(units: int) -> Amount:
    """An amount of whole units, written with a binary suffix."""
    return Amount(units * UNIT, format_bytes(units))


def optional_amount(quantity: Quantity | None) -> Amount | None:
    return None if quantity is None else amount(quantity)


# -- the capacity that a request consumes: request policies, rounding, limits (spec 04 2.12)


Consumed = Mapping[str, int]
"""Capacity that shares of a device consume together, in billionths by name."""


class RequestPolicy(NamedTuple):
    """Which amounts may be requested."""

    default: Amount | None
    valid_values: tuple[Amount, ...]
    has_range: bool
    min: Amount | None = None
    max: Amount | None = None
    step: Amount | None = None

    def rounded(self, requested: Amount) -> Amount:
        """The amount that a request is served with."""
        if self.min is not None:
            return self._rounded_to_step(requested, self.min)
        return next((value for value in self.valid_values if requested.value <= value.value), requested)

    def _rounded_to_step(self, requested: Amount, lowest: Amount) -> Amount:
        if requested.value < lowest.value:
            return lowest
        if self.step is None or not self.step.whole:
            return requested
        steps = -(-(requested.whole - lowest.whole) // self.step.whole)
        return amount_of(lowest.whole + steps * self.step.whole)

    def allows(self, served: Amount) -> bool:
        if self.default is not None and served.value == self.default.value:
            return True
        if self.has_range:
            return self._in_range(served)
        return not self.valid_values or any(served.value == value.value for value in self.valid_values)

    def _in_range(self, served: Amount) -> bool:
        if self.max is not None and served.value > self.max.value:
            return False
        if self.step is None or not self.step.whole:
            return True
        lowest = self.min.whole if self.min is not None else 0
        return (served.whole - lowest) % self.step.whole == 0


class Capacity(NamedTuple):
    """One capacity of a device."""

    total: Amount
    policy: RequestPolicy | None

    def served(self, requested: Amount | None) -> Amount:
        """What a request is served with; without one, the policy's default or everything."""
        policy = self.policy
        if requested is None:
            return policy.default if policy is not None and policy.default is not None else self.total
        return policy.rounded(requested) if policy is not None else requested


def read_capacity(capacity: DeviceCapacity) -> Capacity:
    """The capacity with its amounts parsed; raises QuantityError if one is invalid."""
    policy = capacity.request_policy
    return Capacity(amount(capacity.value), None if policy is None else _read_policy(policy))


def _read_policy(policy: CapacityRequestPolicy) -> RequestPolicy:
    default, values = optional_amount(policy.default), tuple(amount(value) for value in policy.valid_values)
    span = policy.valid_range
    if span is None:
        return RequestPolicy(default, values, False)
    bounds = (optional_amount(bound) for bound in (span.min, span.max, span.step))
    return RequestPolicy(default, values, True, *bounds)


def lacking(
    capacities: Mapping[str, Capacity], requests: Mapping[str, Amount], *consumed: Consumed | None
) -> str | None:
    """The capacity that is missing or insufficient on a device for a request; None if there is none."""
    for name in requests:
        if name not in capacities:
            return name
    for name, capacity in capacities.items():
        served = capacity.served(requests.get(name))
        if capacity.policy is not None and not capacity.policy.allows(served):
            return name
        used = sum(each.get(name, 0) for each in consumed if each is not None)
        if used + served.value > capacity.total.value:
            return name
    return None


def consumption(capacities: Mapping[str, Capacity], requests: Mapping[str, Amount]) -> dict[str, Amount]:
    """What a request consumes of each capacity of a device."""
    return {name: capacity.served(requests.get(name)) for name, capacity in capacities.items()}


# -- devices


_BLOCKING = ("NoSchedule", "NoExecute")
Counters = tuple[tuple[tuple[str, str], int], ...]
"""Amounts in billionths by counter set and counter."""


class PoolId(NamedTuple):
    driver: str
    pool: str


class DeviceContent:
    """Everything of a device except its name; equal devices of a driver share it."""

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
        """Taints that repel claims without a toleration."""
        self._value: dict[str, Any] | EvaluationError | None = None

    @property
    def value(self) -> dict[str, Any]:
        """The value of `device` in selectors; raises EvaluationError without one."""
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
        """Whether it has the counters of its pool; then its devices are not allocated."""
        self.devices: tuple[PoolDevice, ...] = tuple(
            PoolDevice(device.name, contents.content(spec.driver, device), self) for device in spec.devices
        )

    @property
    def node_name(self) -> str:
        """The only node that sees it; empty if there may be several."""
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
