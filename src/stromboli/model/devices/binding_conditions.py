"""Conditions that drivers set on allocated devices before a pod may be bound: met, failed or overdue."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from stromboli.api.types.devices import AllocatedDevice, ResourceClaim
    from stromboli.api.types.meta import Condition

BINDING_TIMEOUT = 600.0
"""Seconds after its allocation in which the conditions of a claim must come true."""


def is_unusable(claim: ResourceClaim, has_come: Callable[[float], bool]) -> bool:
    """Whether an allocated claim will not become usable: a device failed, or its conditions are overdue."""
    allocation = claim.status.allocation
    if allocation is None:
        return False
    waiting = False
    for device in allocation.devices.results:
        if device.binding_conditions:
            true = true_conditions(claim, device).keys()
            if true & set(device.binding_failure_conditions):
                return True
            waiting |= not true >= set(device.binding_conditions)
    allocated_at = allocation.allocation_timestamp
    return waiting and allocated_at is not None and has_come(allocated_at.timestamp() + BINDING_TIMEOUT)


def true_conditions(claim: ResourceClaim, device: AllocatedDevice) -> dict[str, Condition]:
    """The conditions of an allocated device that its driver has set to true, by type."""
    for status in claim.status.devices:
        if (status.driver, status.pool, status.device, status.share_id) == (
            device.driver,
            device.pool,
            device.device,
            device.share_id,
        ):
            return {
                condition.type: condition for condition in status.conditions if condition.status == "True"
            }
    return {}
