"""Selectors evaluated once for each expression and what it reads of a device."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stromboli.api.cel.device_selectors import DeviceSelection, compiled_selector
from stromboli.api.cel.expression import CelError, EvaluationError

if TYPE_CHECKING:
    from stromboli.api.cel.device_selectors import Read
    from stromboli.model.devices.pools.pool_devices import DeviceContent

MAX_KEPT = 256 * 1024
"""Bytes of the selectors that are kept compiled: each takes up to 200 times as many in memory."""
MAX_OUTCOMES = 200_000
"""Outcomes of all selectors that are kept."""


class Selector:
    """A compiled selector, or why it is none."""

    def __init__(self, expression: str) -> None:
        self.expression = expression
        self.problem: CelError | None = None
        self._selection: DeviceSelection | None = None
        try:
            self._selection = compiled_selector(expression)
        except CelError as error:
            self.problem = error

    @property
    def reads(self) -> frozenset[Read] | None:
        """What it reads of attributes and capacity; None if that depends on the device."""
        return self._selection.reads if self._selection is not None else frozenset()

    def outcome(self, content: DeviceContent) -> bool | str:
        """Whether a device is selected, or why that cannot be said."""
        if self._selection is None:
            return f"CEL compile error: {self.problem}"
        try:
            return self._selection.matches(content.value)
        except EvaluationError as error:
            return f"CEL runtime error: {error}"


class SelectorTable:
    """Selectors that are kept compiled, with their outcomes for what they read of devices."""

    def __init__(self) -> None:
        self._selectors: dict[str, Selector] = {}
        """The least lately used first."""
        self._bytes = 0
        self._outcomes: dict[object, bool | str] = {}

    def selector(self, expression: str) -> Selector:
        """The selector of an expression, compiled now if it is not kept."""
        selector = self._selectors.pop(expression, None)
        if selector is None:
            selector = Selector(expression)
            self._bytes += len(expression)
        self._selectors[expression] = selector
        while self._bytes > MAX_KEPT and len(self._selectors) > 1:
            oldest = next(iter(self._selectors))
            del self._selectors[oldest]
            self._bytes -= len(oldest)
        return selector

    def outcome(self, expression: str, content: DeviceContent) -> bool | str:
        """Whether a device is selected by an expression, or why that cannot be said."""
        selector = self.selector(expression)
        shared = content.device.allow_multiple_allocations
        key = (expression, content.driver, shared, projection(content, selector.reads))
        outcome = self._outcomes.get(key)
        if outcome is None:
            if len(self._outcomes) >= MAX_OUTCOMES:
                self._outcomes.clear()
            outcome = self._outcomes[key] = selector.outcome(content)
        return outcome


def projection(content: DeviceContent, reads: frozenset[Read] | None) -> object:
    """What reads see of a device, as a key."""
    if reads is None:
        return content.number
    return tuple(_lookup(content, *read) for read in reads)


def _lookup(content: DeviceContent, part: str, domain: str, name: str) -> object:
    if part == "capacity":
        capacities = content.capacities
        capacity = capacities.get(f"{domain}/{name}")
        if capacity is None and domain == content.driver:
            capacity = capacities.get(name)
        return capacity.total.value if capacity is not None else None
    attributes = content.device.attributes
    attribute = attributes.get(f"{domain}/{name}")
    return attributes.get(name) if attribute is None and domain == content.driver else attribute
