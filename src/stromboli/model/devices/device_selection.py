"""Selectors evaluated once for each expression and what it reads of a device."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

from stromboli.api.cel.device_selectors import DeviceSelection, compiled_selector
from stromboli.api.cel.expression import CelError, EvaluationError

if TYPE_CHECKING:
    from stromboli.api.cel.device_selectors import Read
    from stromboli.model.devices.pools.pool_devices import DeviceContent

MAX_SELECTORS = 512
"""Selectors that are kept compiled."""
MAX_OUTCOMES = 100_000
"""Outcomes of a selector that are kept."""


class Selector:
    """A selector with its outcomes."""

    def __init__(self, selection: DeviceSelection) -> None:
        self._selection = selection
        self._outcomes: dict[object, bool | EvaluationError] = {}

    @property
    def reads(self) -> frozenset[Read] | None:
        return self._selection.reads

    def matches(self, content: DeviceContent) -> bool:
        """Whether a device is selected; EvaluationError if the selector has no value for it."""
        key = (content.driver, content.device.allow_multiple_allocations, projection(content, self.reads))
        outcome = self._outcomes.get(key)
        if outcome is None:
            try:
                outcome = self._selection.matches(content.value)
            except EvaluationError as error:
                outcome = error
            if len(self._outcomes) >= MAX_OUTCOMES:
                self._outcomes.clear()
            self._outcomes[key] = outcome
        if isinstance(outcome, EvaluationError):
            raise outcome
        return outcome


def projection(content: DeviceContent, reads: frozenset[Read] | None) -> object:
    """What reads see of a device, as a key; EvaluationError if it has no value for selectors."""
    value = content.value
    if reads is None:
        return content.number
    return tuple(_lookup(value, read) for read in reads)


def _lookup(value: dict[str, Any], read: Read) -> object:
    part, domain, name = read
    found = value[part].get(domain, {}).get(name)
    return tuple((type(item), item) for item in found) if isinstance(found, list) else (type(found), found)


@lru_cache(MAX_SELECTORS)
def selector(expression: str) -> Selector | CelError:
    """The selector of an expression, or why it is none."""
    try:
        return Selector(compiled_selector(expression))
    except CelError as error:
        return error
