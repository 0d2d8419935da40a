"""The outcome of a search for devices, and how long it may take."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from stromboli.model.devices.claim_plan import Option
    from stromboli.model.devices.pools.quantities import Amount

MAX_STEPS = 100_000
"""Steps of a search: devices that it looks at, and selectors that it evaluates."""
CEL_COST_OF_STEP = 5_000
"""The cost of evaluating selectors that counts as one step; both then take some microseconds."""


class StepBudget:
    """The steps that a search may take."""

    def __init__(self, steps: int = MAX_STEPS) -> None:
        self.limit = steps
        self.steps = steps
        """Those that are left; below zero when the search was stopped."""
        self.has_evaluated = False
        """Whether selectors were evaluated: their outcomes are kept, so that a second search gets further."""

    @property
    def spent(self) -> int:
        return self.limit - self.steps

    @property
    def is_exceeded(self) -> bool:
        return self.steps < 0

    def spend(self) -> None:
        self.steps -= 1

    def spend_cost(self, cost: int) -> None:
        """A selector was evaluated, at this cost."""
        self.has_evaluated = True
        self.steps -= cost // CEL_COST_OF_STEP


class DeviceChoice(NamedTuple):
    """A device for an option of a claim."""

    option: Option
    place: int
    """Among the devices of all usable pools of the node."""
    consumed: dict[str, Amount]
    """Of a shared device: what it takes of each capacity."""


class Solution(NamedTuple):
    """Devices for all claims, in the order in which they were chosen."""

    choices: tuple[tuple[DeviceChoice, ...], ...]
    """By claim."""
    options: tuple[tuple[Option, ...], ...]
    """The option that was taken, by claim and request."""
