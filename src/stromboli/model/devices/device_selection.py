"""Selecting devices: the steps that a search may take, its solution, and selectors.

A selector is evaluated once for each expression and for what the expression reads of a device.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from stromboli.api.cel.device_selectors import DeviceSelection, compiled_selector
from stromboli.api.cel.expression import CelError, CostBudget, EvaluationError

if TYPE_CHECKING:
    from stromboli.api.cel.device_selectors import Read
    from stromboli.model.devices.claim_plan import Option
    from stromboli.model.devices.pools.pool_devices import Amount, DeviceContent


# -- the outcome of a search for devices, and how long it may take


MAX_STEPS = 100_000
"""Maximum steps of a search: devices that it tries, and selectors that it evaluates."""
CEL_COST_OF_STEP = 5_000
"""The cost of evaluating selectors that counts as one step; both take some microseconds."""


class StepBudget:
    """The steps that a search may take."""

    def __init__(self, steps: int = MAX_STEPS) -> None:
        self.limit = steps
        self.steps = steps
        """Remaining steps; negative when the search was stopped."""
        self.has_evaluated = False
        """Whether selectors were evaluated: their results are cached, so that a second search gets further."""

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
    """What the claim consumes of each capacity of a shared device."""


class Solution(NamedTuple):
    """Devices for all claims, in the order in which they were chosen."""

    choices: tuple[tuple[DeviceChoice, ...], ...]
    """By claim."""
    options: tuple[tuple[Option, ...], ...]
    """The chosen option, by claim and request."""


# -- selectors


MAX_COMPILED = 256 * 1024
"""Maximum bytes of the selectors that are kept compiled: each takes up to 200 times as many in memory."""
MAX_KEPT = 4 * 1024 * 1024
"""Maximum bytes of the selectors whose results are cached."""
MAX_OUTCOMES = 200_000
"""Maximum cached results of all selectors."""
COST_OF_BYTE = 10_000
"""The cost of compiling a byte of an expression, in the unit of evaluations."""


class CompiledSelector:
    """A selector: what it reads of devices, and its cached results."""

    def __init__(self, expression: str, compiled: DeviceSelection | CelError) -> None:
        self.expression = expression
        self.reads = compiled.reads if isinstance(compiled, DeviceSelection) else frozenset()
        """What it reads of attributes and capacity; None if that depends on the device."""
        self.outcomes: dict[object, bool | str] = {}


class SelectorTable:
    """Selectors, the most recent ones compiled, with their results for what they read of devices."""

    def __init__(self) -> None:
        self._selectors: dict[str, CompiledSelector] = {}
        """The least recently used first."""
        self._bytes = 0
        self._compiled: dict[str, DeviceSelection | CelError] = {}
        """The same for compiled ones; or the error of an invalid expression."""
        self._compiled_bytes = 0
        self._outcomes = 0
        """The number of results of all selectors."""

    def reads(self, expression: str, budget: StepBudget) -> frozenset[Read] | None:
        """What an expression reads of attributes and capacity; None if that depends on the device."""
        return self._selector(expression, budget).reads

    def outcome(self, expression: str, content: DeviceContent, budget: StepBudget) -> bool | str:
        """Whether an expression selects a device, or why it cannot be evaluated."""
        selector = self._selector(expression, budget)
        key = (
            content.driver,
            content.device.allow_multiple_allocations,
            projection(content, selector.reads),
        )
        outcome = selector.outcomes.get(key)
        if outcome is None:
            if self._outcomes >= MAX_OUTCOMES:
                self._forget_outcomes()
            costs = CostBudget()
            outcome = selector.outcomes[key] = _evaluate(self._compile(expression, budget), content, costs)
            self._outcomes += 1
            budget.spend_cost(costs.spent)
        return outcome

    def _selector(self, expression: str, budget: StepBudget) -> CompiledSelector:
        selector = self._selectors.pop(expression, None)
        if selector is None:
            selector = CompiledSelector(expression, self._compile(expression, budget))
            self._bytes += len(expression)
        self._selectors[expression] = selector
        while self._bytes > MAX_KEPT and len(self._selectors) > 1:
            oldest = self._selectors.pop(next(iter(self._selectors)))
            self._bytes -= len(oldest.expression)
            self._outcomes -= len(oldest.outcomes)
        return selector

    def _compile(self, expression: str, budget: StepBudget) -> DeviceSelection | CelError:
        compiled = self._compiled.pop(expression, None)
        if compiled is None:
            try:
                compiled = compiled_selector(expression)
            except CelError as error:
                compiled = error
            self._compiled_bytes += len(expression)
            budget.spend_cost(COST_OF_BYTE * len(expression))
        self._compiled[expression] = compiled
        while self._compiled_bytes > MAX_COMPILED and len(self._compiled) > 1:
            oldest = next(iter(self._compiled))
            del self._compiled[oldest]
            self._compiled_bytes -= len(oldest)
        return compiled

    def _forget_outcomes(self) -> None:
        for selector in self._selectors.values():
            selector.outcomes.clear()
        self._outcomes = 0


def _evaluate(selection: DeviceSelection | CelError, content: DeviceContent, costs: CostBudget) -> bool | str:
    """Whether a device is selected, or why the selector cannot be evaluated."""
    if isinstance(selection, CelError):
        return f"CEL compile error: {selection}"
    try:
        return selection.matches(content.value, costs)
    except EvaluationError as error:
        return f"CEL runtime error: {error}"


def projection(content: DeviceContent, reads: frozenset[Read] | None) -> object:
    """The values that an expression reads of a device, as a key."""
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
