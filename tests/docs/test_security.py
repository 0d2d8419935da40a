"""The bounds in docs/security.md are those of the code."""

from __future__ import annotations

import importlib
import re
from typing import NamedTuple

import pytest

from tests.docs.pages import ROOT

PAGE = (ROOT / "docs" / "security.md").read_text()
_ROW = re.compile(
    r"^\| [^|]+ \| \[`(?P<name>[\w.]+)`\]\(\.\./src/(?P<file>[\w/]+)\.py\) \| (?P<value>[^|]+) \| [^|]+ \|$",
    re.M,
)
UNITS = {
    "KiB": 1024,
    "MiB": 1024**2,
    "GiB": 1024**3,
    "ms": 0.001,
    "s": 1,
    "min": 60,
    "h": 3600,
    "days": 24 * 3600,
    "characters": 1,
    "": 1,
}


class Bound(NamedTuple):
    """A row of a table of bounds."""

    name: str
    module: str
    value: str

    @property
    def amount(self) -> float:
        """The value, in bytes, seconds or pieces."""
        number, _, unit = self.value.partition(" ")
        return float(number.replace(",", "")) * UNITS[unit]


BOUNDS = [
    Bound(row["name"], row["file"].replace("/", "."), row["value"].strip()) for row in _ROW.finditer(PAGE)
]


def test_every_row_of_the_tables_of_bounds_can_be_read() -> None:
    tables = PAGE.partition("## Bounds")[2]
    rows = [line for line in tables.splitlines() if line.startswith("| ") and "](../src/" in line]
    assert len(BOUNDS) > 50
    assert [line for line in rows if not _ROW.match(line)] == []


@pytest.mark.parametrize("bound", BOUNDS, ids=lambda bound: f"{bound.module}.{bound.name}")
def test_a_bound_in_the_documentation_is_the_one_in_the_code(bound: Bound) -> None:
    value = importlib.import_module(bound.module)
    for part in bound.name.split("."):
        value = getattr(value, part)
    assert value == pytest.approx(bound.amount)
