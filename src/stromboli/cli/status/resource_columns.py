"""Amounts of a resource as tables show them: which resources belong to a column, and how an amount is written."""

from __future__ import annotations

from collections.abc import Callable

from stromboli.api.node_state import is_gpu
from stromboli.api.resources.quantity import milli

Resources = dict[str, str]
UNITS = ("Ki", "Mi", "Gi", "Ti", "Pi")
NONE = "-"
BY_CLASS = "deviceclass"
"""How resources begin that name a class of devices."""


class Column:
    """A resource in a table: what it is called, which resources of a list belong to it, and amounts as text."""

    def __init__(
        self, title: str, is_shown: Callable[[str], bool], text: Callable[[float], str] = "{:.12g}".format
    ) -> None:
        self.title = title
        self._is_shown = is_shown
        self._text = text

    def cell(self, resources: Resources | None, unnamed: str = "0") -> str:
        """The amount; a dash where no list is stated, and `unnamed` where it does not name the resource."""
        if not resources:
            return NONE
        return self._text(self.amount(resources)) if any(map(self._is_shown, resources)) else unnamed

    def amount(self, resources: Resources) -> float:
        return sum(milli(amount) for name, amount in resources.items() if self._is_shown(name)) / 1000


def short_bytes(amount: float) -> str:
    """Three digits and a unit."""
    unit = ""
    for larger in UNITS:
        if amount < 1024:
            break
        amount, unit = amount / 1024, larger
    return f"{amount:.3g}{unit}" if amount < 1000 else f"{amount:.0f}{unit}"


def is_plain_gpu(name: str) -> bool:
    """Whether it is a GPU as nodes list it, and not a class of devices."""
    return is_gpu(name) and not name.startswith(BY_CLASS)
