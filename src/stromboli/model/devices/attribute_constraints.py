"""Constraints over the devices of a claim: an attribute is the same for all, or different for each (spec 04 2.12)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from stromboli.api.types.devices import DeviceAttribute, DeviceConstraint
    from stromboli.model.devices.claim_plan import Option
    from stromboli.model.devices.pools.pool_devices import DeviceContent

Values = frozenset[tuple[str, object]]
"""The values of an attribute with their type; of a list, all its values."""


def attribute_values(content: DeviceContent, name: str) -> Values | None:
    """The values of an attribute with a qualified name; a bare name belongs to the driver's domain."""
    attributes = content.device.attributes
    attribute = attributes.get(name)
    if attribute is None:
        domain, _, bare = name.partition("/")
        attribute = attributes.get(bare) if bare and domain == content.driver else None
    return None if attribute is None else frozenset(_typed(attribute))


def _typed(attribute: DeviceAttribute) -> Iterable[tuple[str, object]]:
    listed = (
        ("int", attribute.int_values),
        ("bool", attribute.bool_values),
        ("string", attribute.string_values),
        ("version", attribute.version_values),
    )
    for kind, values in listed:
        if values:
            return [(kind, value) for value in values]
    single = (
        ("string", attribute.string_value),
        ("int", attribute.int_value),
        ("bool", attribute.bool_value),
        ("version", attribute.version_value),
    )
    return [(kind, value) for kind, value in single if value is not None][:1]


class ConstraintState:
    """A constraint, and the devices that were chosen under it so far."""

    def __init__(self, constraint: DeviceConstraint) -> None:
        self._requests = frozenset(constraint.requests)
        self.attribute = constraint.match_attribute or constraint.distinct_attribute
        self._is_match = bool(constraint.match_attribute)
        self._chosen: list[Values] = []
        """Of `matchAttribute` what all devices up to this one have in common, of `distinctAttribute` what each has."""

    def __str__(self) -> str:
        return f"{'matchAttribute' if self._is_match else 'distinctAttribute'} {self.attribute}"

    def concerns(self, option: Option) -> bool:
        return not self._requests or option.request in self._requests or option.name in self._requests

    def add(self, content: DeviceContent) -> bool:
        """Choose a device, if the constraint allows it."""
        values = attribute_values(content, self.attribute)
        if not values:
            return False
        if self._is_match:
            common = values & self._chosen[-1] if self._chosen else values
            if not common:
                return False
            self._chosen.append(common)
            return True
        if any(values & others for others in self._chosen):
            return False
        self._chosen.append(values)
        return True

    def remove(self) -> None:
        """Take the last device back."""
        self._chosen.pop()
