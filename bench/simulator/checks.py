"""What a benchmark of the simulator finds: tables, and whether each figure is where it must be."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple


class Check(NamedTuple):
    """A figure against what it must be."""

    what: str
    figure: str
    must_be: str
    holds: bool


class Findings(NamedTuple):
    """A table for the documentation, with what must hold of it."""

    title: str
    rows: Sequence[Sequence[str]]
    checks: Sequence[Check]
