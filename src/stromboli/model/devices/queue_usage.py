"""What the claims of a queue's tasks ask for by device class, each claim once (spec 03 9)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from stromboli.api.resources.quantity import QuantityError, milli
from stromboli.api.types.devices import EXACT_COUNT
from stromboli.model.amounts import add_to

if TYPE_CHECKING:
    from stromboli.api.types.devices import ResourceClaimSpec
    from stromboli.model.devices.claim_use import ClaimUse

COUNT_PREFIX = "deviceclass/"
"""With a class: how many devices of it."""
CAPACITY_INFIX = ".deviceclass/"
"""Between the name of a capacity and a class: how much of it."""
DeviceAmounts = Mapping[str, int]
"""Thousandths by `deviceclass/<class>` and `<capacity>.deviceclass/<class>`, as queues name them."""


def device_amounts(spec: ResourceClaimSpec) -> dict[str, int]:
    """What a claim counts against quota: exact counts alone; alternatives and `All` count nothing."""
    amounts: dict[str, int] = {}
    for request in spec.devices.requests:
        exactly = request.exactly
        if exactly is None or not exactly.device_class_name or exactly.allocation_mode != EXACT_COUNT:
            continue
        name, count = exactly.device_class_name, max(exactly.devices, 0)
        add_to(amounts, COUNT_PREFIX + name, 1000 * count)
        for capacity, quantity in (exactly.capacity.requests if exactly.capacity else {}).items():
            try:
                add_to(amounts, f"{capacity}{CAPACITY_INFIX}{name}", max(milli(quantity), 0) * count)
            except QuantityError:
                continue  # the allocator refuses the claim, as it does those below zero, and says why
    return amounts


def class_of(name: str) -> str:
    """The device class of a key; empty for other resources."""
    before, infix, after = name.partition(CAPACITY_INFIX)
    if infix and before:
        return after
    return name.removeprefix(COUNT_PREFIX) if name.startswith(COUNT_PREFIX) else ""


class DeviceUsage:
    """Claims with how many tasks use each, and what they ask for together."""

    __slots__ = ("_claims", "amounts")

    def __init__(self) -> None:
        self._claims: dict[str, tuple[int, DeviceAmounts]] = {}
        """How many tasks use each claim, by its key."""
        self.amounts: dict[str, int] = {}
        """What all the claims ask for."""

    def __bool__(self) -> bool:
        return bool(self._claims)

    def add(self, claims: Iterable[ClaimUse]) -> None:
        """A task uses these claims."""
        for use in claims:
            self._shift(use, 1)

    def remove(self, claims: Iterable[ClaimUse]) -> None:
        """A task uses these claims no longer."""
        for use in claims:
            self._shift(use, -1)

    def _shift(self, use: ClaimUse, sign: int) -> None:
        """Count a user more or less; below zero where a user is taken off that was not counted here."""
        users, amounts = self._claims.pop(use.key, (0, None))
        if amounts is None:
            amounts = use.content.amounts if use.content is not None else {}
        left = users + sign
        if left:
            self._claims[use.key] = (left, amounts)
        if (users > 0) is not (left > 0) or (users < 0) is not (left < 0):
            for name, amount in amounts.items():
                add_to(self.amounts, name, sign * amount)

    def added_by(self, claims: Iterable[ClaimUse]) -> dict[str, int]:
        """What a task with these claims would add: nothing for claims that are in use already."""
        added: dict[str, int] = {}
        for use in claims:
            if self._claims.get(use.key, (0,))[0] <= 0 and use.content is not None:
                for name, amount in use.content.amounts.items():
                    add_to(added, name, amount)
        return added
