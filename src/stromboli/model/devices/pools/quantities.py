"""Amounts of device capacity and counters as whole numbers, exact to a billionth of a unit."""

from __future__ import annotations

import math
from typing import NamedTuple

from stromboli.api.resources.quantity import exact, format_bytes
from stromboli.api.types.meta import Quantity

UNIT = 10**9


class Amount(NamedTuple):
    """An amount, with the text that it is written as."""

    value: int
    """In billionths, rounded up."""
    text: Quantity

    @property
    def whole(self) -> int:
        """In units, rounded up."""
        return -(-self.value // UNIT)


def amount(quantity: Quantity) -> Amount:
    """The amount of a quantity; QuantityError if it is none."""
    return Amount(math.ceil(exact(quantity) * UNIT), quantity)


def amount_of(units: int) -> Amount:
    """An amount of whole units, written with a binary suffix."""
    return Amount(units * UNIT, format_bytes(units))


def optional_amount(quantity: Quantity | None) -> Amount | None:
    return None if quantity is None else amount(quantity)
