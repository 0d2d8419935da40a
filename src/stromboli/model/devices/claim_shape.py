"""Claims that ask for the same: compiled, with answers that all nodes of equal pools in equal use share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from stromboli.api.cel.expression import CelError, EvaluationError
from stromboli.model.devices.attribute_constraints import attribute_values
from stromboli.model.devices.claim_plan import ClaimPlan, Option
from stromboli.model.devices.device_selection import Selector, projection, selector
from stromboli.model.devices.shortage import SearchStopped, Shortage

if TYPE_CHECKING:
    from stromboli.api.cel.device_selectors import Read
    from stromboli.model.devices.device_search import Solution
    from stromboli.model.devices.devices_in_use import DevicesInUse
    from stromboli.model.devices.pools.node_pools import NodePool
    from stromboli.model.devices.pools.pool_devices import DeviceContent

MAX_KINDS = 200_000
"""Contents of devices of which a shape remembers the kind."""
MAX_ANSWERS = 20_000
"""Answers that a shape remembers, one for all nodes in the same state."""


class ClaimShape:
    """The plans of claims, and what they make of devices."""

    def __init__(self, claims: tuple[ClaimPlan, ...]) -> None:
        self.claims = claims
        self.answers: dict[object, Solution | Shortage] = {}
        """By the state of a node (`state`)."""
        self._reads, self._selectors = _reads_of(claims)
        self._attributes = tuple(
            sorted(
                {
                    constraint.match_attribute or constraint.distinct_attribute
                    for claim in claims
                    for constraint in claim.constraints
                }
            )
        )
        self._kinds: dict[int, int] = {}
        self._kind_numbers: dict[object, int] = {}
        self._pools: WeakKeyDictionary[NodePool, int] = WeakKeyDictionary()
        self._pool_numbers: dict[object, int] = {}

    # -- equal devices, equal pools

    def kind(self, content: DeviceContent) -> int:
        """Equal for devices between which these claims see no difference."""
        known = self._kinds.get(content.number)
        if known is None:
            if len(self._kinds) >= MAX_KINDS:
                self._kinds.clear()
            known = self._kinds[content.number] = _number(self._kind_numbers, self._seen(content))
        return known

    def _seen(self, content: DeviceContent) -> object:
        device = content.device
        try:
            read = projection(content, self._reads)
        except EvaluationError as error:
            read = str(error)
        return (
            content.driver,
            read,
            tuple(attribute_values(content, name) for name in self._attributes),
            tuple((name, capacity) for name, capacity in content.capacities.items()),
            content.counters,
            content.taints,
            device.allow_multiple_allocations,
        )

    def state(self, pools: Sequence[NodePool], in_use: DevicesInUse) -> object:
        """Equal for nodes with equal pools of which the same devices are in use."""
        return tuple(
            (self._pool_number(pool), use.key(pool) if (use := in_use.of(pool.id)) is not None else ())
            for pool in pools
        )

    def _pool_number(self, pool: NodePool) -> int:
        known = self._pools.get(pool)
        if known is None:
            kinds = tuple(self.kind(device.content) for device in pool.devices)
            consumers = tuple(device.content.counters for device in pool.consumers)
            seen = (kinds, pool.reachable, pool.counters, consumers, pool.is_incomplete, pool.invalid)
            known = self._pools[pool] = _number(self._pool_numbers, seen)
        return known

    def remember(self, state: object, answer: Solution | Shortage) -> None:
        if len(self.answers) >= MAX_ANSWERS:
            self.answers.clear()
        self.answers[state] = answer

    # -- selection

    def selects(self, claim: int, option: Option, content: DeviceContent) -> str | None:
        """The first selector of an option that is false for a device, None if none is; SearchStopped on errors."""
        for owner, expression in option.selectors:
            compiled = self._selectors[expression]
            try:
                if isinstance(compiled, CelError):
                    raise compiled
                if not compiled.matches(content):
                    return expression
            except (CelError, EvaluationError) as error:
                kind = "compile" if isinstance(error, CelError) else "runtime"
                message = f"request {option.name}: {owner}: selector {_short(expression)}: CEL {kind} error: {error}"
                raise SearchStopped(
                    Shortage(message, True, claim, option.name, option.device_class.name)
                ) from None
        return None


def _short(expression: str) -> str:
    text = " ".join(expression.split())
    return repr(text if len(text) <= 100 else f"{text[:100]}...")


def _number(numbers: dict[object, int], key: object) -> int:
    return numbers.setdefault(key, len(numbers))


def _reads_of(
    claims: Sequence[ClaimPlan],
) -> tuple[frozenset[Read] | None, dict[str, Selector | CelError]]:
    """What all selectors of the claims read together, and the selectors by their expression."""
    reads: set[Read] | None = set()
    selectors: dict[str, Selector | CelError] = {}
    options = (option for claim in claims for request in claim.requests for option in request.options)
    for _, expression in (each for option in options for each in option.selectors):
        compiled = selectors[expression] = selector(expression)
        if isinstance(compiled, CelError) or reads is None:
            continue
        reads = None if compiled.reads is None else reads | compiled.reads
    return None if reads is None else frozenset(reads), selectors
