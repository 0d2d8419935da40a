"""Claims with equal requests: compiled, with answers that all nodes of equal pools in equal use share."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from stromboli.api.cel.expression import NO_SUCH_KEY
from stromboli.model.devices.claim_plan import (
    FIX_KEY,
    FIX_SELECTOR,
    ClaimPlan,
    DeviceShortage,
    Option,
    SearchStopped,
)
from stromboli.model.devices.device_selection import SelectorTable, projection
from stromboli.model.devices.devices_in_use import UseKey

if TYPE_CHECKING:
    from stromboli.api.cel.device_selectors import Read
    from stromboli.api.types.devices import DeviceAttribute, DeviceConstraint
    from stromboli.model.devices.device_selection import Solution, StepBudget
    from stromboli.model.devices.devices_in_use import DevicesInUse
    from stromboli.model.devices.pools.node_pools import NodePool
    from stromboli.model.devices.pools.pool_devices import DeviceContent


# -- constraints: an attribute is the same for all devices of a claim, or different for each (spec 04 2.12)


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
        """Undo the choice of the last device."""
        self._chosen.pop()


# -- claim shapes


MAX_KNOWN = 20_000
"""Maximum kinds of devices, and of pools, that a shape caches."""
MAX_STATES = 500_000
"""Maximum devices in all node states whose result a shape caches."""
State = tuple[tuple[int, UseKey], ...]


class ClaimShape:
    """The plans of claims, and cached results about devices and nodes."""

    def __init__(self, claims: tuple[ClaimPlan, ...], selectors: SelectorTable, budget: StepBudget) -> None:
        self.claims = claims
        self._selectors = selectors
        self._reads = _reads_of(claims, selectors, budget)
        self._attributes = tuple(
            sorted(
                {
                    constraint.match_attribute or constraint.distinct_attribute
                    for claim in claims
                    for constraint in claim.constraints
                }
            )
        )
        self._forget()

    def _forget(self) -> None:
        self._answers: dict[State, Solution | DeviceShortage] = {}
        """By the state of a node (`state`)."""
        self._exceeded: dict[tuple[State, int], DeviceShortage] = {}
        """By state and limit, for searches whose steps did not suffice."""
        self._states = 0
        self._kinds: dict[int, int] = {}
        self._kind_numbers: dict[object, int] = {}
        self._pools: WeakKeyDictionary[NodePool, int] = WeakKeyDictionary()
        self._pool_numbers: dict[object, int] = {}

    # -- equal devices, equal pools

    def kind(self, content: DeviceContent) -> int:
        """A key that is equal for devices that these claims cannot distinguish."""
        known = self._kinds.get(content.number)
        if known is None:
            if len(self._kinds) >= MAX_KNOWN:
                self._kinds.clear()
            known = self._kinds[content.number] = _number(self._kind_numbers, self._seen(content))
        return known

    def _seen(self, content: DeviceContent) -> object:
        return (
            content.driver,
            projection(content, self._reads),
            tuple(attribute_values(content, name) for name in self._attributes),
            tuple((name, capacity) for name, capacity in content.capacities.items()),
            content.counters,
            content.taints,
            content.device.allow_multiple_allocations,
        )

    def state(self, pools: Sequence[NodePool], in_use: DevicesInUse) -> State:
        """A key that is equal for nodes with equal pools in equal use."""
        if len(self._pool_numbers) > MAX_KNOWN or len(self._kind_numbers) > MAX_KNOWN:
            self._forget()
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

    def answer(self, state: State, limit: int) -> Solution | DeviceShortage | None:
        """The cached result of a search with a limit of steps, if known."""
        return self._answers.get(state) or self._exceeded.get((state, limit))

    def remember(self, state: State, answer: Solution | DeviceShortage, budget: StepBudget) -> None:
        """Cache the result of a search."""
        self._states += 1 + sum(len(part) for _, use in state for part in use)
        if self._states > MAX_STATES:
            self._answers.clear()
            self._exceeded.clear()
            self._states = 0
        if isinstance(answer, DeviceShortage) and budget.is_exceeded:
            self._exceeded[state, budget.limit] = answer
        else:
            self._answers[state] = answer

    # -- selection

    def selects(self, claim: int, option: Option, content: DeviceContent, budget: StepBudget) -> str | None:
        """The first selector of an option that is false for a device, None if none is; SearchStopped on errors."""
        for owner, expression in option.selectors:
            outcome = self._selectors.outcome(expression, content, budget)
            if isinstance(outcome, str):
                message = f"request {option.name}: {owner}: selector {_short(expression)}: {outcome}"
                raise SearchStopped(
                    DeviceShortage(
                        message,
                        True,
                        claim,
                        option.name,
                        option.asked.device_class_name,
                        mistake=FIX_KEY if NO_SUCH_KEY in outcome else FIX_SELECTOR,
                    )
                )
            if not outcome:
                return expression
        return None


def _short(expression: str) -> str:
    text = " ".join(expression.split())
    return repr(text if len(text) <= 100 else f"{text[:100]}...")


def _number(numbers: dict[object, int], key: object) -> int:
    return numbers.setdefault(key, len(numbers))


def _reads_of(
    claims: Sequence[ClaimPlan], selectors: SelectorTable, budget: StepBudget
) -> frozenset[Read] | None:
    """What all selectors of the claims read together; None if that depends on the device."""
    reads: set[Read] = set()
    options = (option for claim in claims for request in claim.requests for option in request.options)
    for _, expression in (each for option in options for each in option.selectors):
        some = selectors.reads(expression, budget)
        if some is None:
            return None
        reads |= some
    return frozenset(reads)
