"""How much of a device's capacity a request consumes: request policies, rounding, limits (spec 04 2.12)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from stromboli.api.types.devices import CapacityRequestPolicy, DeviceCapacity
from stromboli.model.devices.pools.quantities import Amount, amount, amount_of, optional_amount

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
    """What a device has of something."""

    total: Amount
    policy: RequestPolicy | None

    def served(self, requested: Amount | None) -> Amount:
        """What a request is served with; without one, the policy's default or everything."""
        policy = self.policy
        if requested is None:
            return policy.default if policy is not None and policy.default is not None else self.total
        return policy.rounded(requested) if policy is not None else requested


def read_capacity(capacity: DeviceCapacity) -> Capacity:
    """The capacity with its amounts parsed; QuantityError if one is none."""
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
    """The capacity of which a device has too little left for a request, or that it does not have; None if none."""
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
