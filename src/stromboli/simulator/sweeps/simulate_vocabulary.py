"""What a grid may say: the options of `stromboli simulate`, as whoever knows the command line describes them."""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping
from dataclasses import dataclass


class PathUse(enum.Enum):
    """Whether the value of an option names a file, whose content then counts."""

    NEVER = "never"
    IF_THERE = "if there"
    """A text that may be the name of a file, such as nodes in a notation or in manifests."""
    ALWAYS = "always"


@dataclass(frozen=True, slots=True)
class SimulateOption:
    """An option of the command, by the name that grids use: `load` for `--load`."""

    name: str
    flag: str
    is_switch: bool = False
    off_flag: str = ""
    """What turns a switch off that is on by default."""
    repeatable: bool = False
    path_use: PathUse = PathUse.NEVER
    is_workload: bool = False
    """Whether it says what is simulated; a run needs one such option."""
    problem: Callable[[str], str] = lambda text: ""
    """What is wrong with a value; empty if nothing is."""


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """All options that a grid may set, and those that it may not, with the reason."""

    options: Mapping[str, SimulateOption]
    refused: Mapping[str, str]
