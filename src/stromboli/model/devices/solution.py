"""The outcome of a search for devices, and how long it may take."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from stromboli.model.devices.claim_plan import Option
    from stromboli.model.devices.pools.quantities import Amount

MAX_STEPS = 100_000
"""Devices that a search looks at."""


class StepBudget:
    """The steps that searches may take together, such as those for one task on all nodes."""

    def __init__(self, steps: int = MAX_STEPS) -> None:
        self.steps = steps

    def spend(self) -> bool:
        self.steps -= 1
        return self.steps >= 0


class Choice(NamedTuple):
    """A device for an option of a claim."""

    option: Option
    place: int
    """Among the devices of all usable pools of the node."""
    consumed: dict[str, Amount]
    """Of a shared device: what it takes of each capacity."""


class Solution(NamedTuple):
    """Devices for all claims, in the order in which they were chosen."""

    choices: tuple[tuple[Choice, ...], ...]
    """By claim."""
    options: tuple[tuple[Option, ...], ...]
    """The option that was taken, by claim and request."""
