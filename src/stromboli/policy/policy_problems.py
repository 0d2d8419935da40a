"""Problems of a configuration: a line, a sentence and the severity."""

import difflib
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from typing import Self

NOT_YET = "known to Volcano, not in Stromboli yet"
"""About an argument that works in Volcano and not here."""


class Severity(Enum):
    """Whether a problem refuses the file always, only in strict mode, or never."""

    FATAL = "fatal"
    """Volcano refuses it too."""
    ERROR = "error"
    """Volcano ignores it: a warning in lenient mode."""
    WARNING = "warning"


class PlacedMessage(str):
    """`FILE:LINE: message`, as compilers report errors, with its parts."""

    line: int
    """0: unknown."""
    message: str

    def __new__(cls, source_name: str, line: int, message: str) -> Self:
        where = f"{source_name}:{line}" if line else source_name
        placed = super().__new__(cls, f"{where}: {message}")
        placed.line, placed.message = line, message
        return placed


@dataclass(frozen=True, slots=True)
class Problem:
    """One problem, and its line (0: unknown)."""

    line: int
    message: str
    severity: Severity = Severity.ERROR

    def at(self, source_name: str) -> PlacedMessage:
        return PlacedMessage(source_name, self.line, self.message)


def suggestion(word: str, known: Iterable[str]) -> str:
    """The nearest valid name as the end of a sentence, else all valid names if few, else nothing."""
    names = sorted(set(known))
    near = nearest(word, names)
    if near:
        return f'; did you mean "{near}"?'
    return f"; known: {', '.join(names)}" if 0 < len(names) <= 30 else ""


def nearest(word: str, known: Iterable[str]) -> str:
    """The probably intended name; empty if none is near."""
    by_lower = {name.lower(): name for name in sorted(set(known))}
    near = difflib.get_close_matches(word.lower(), by_lower, n=1) if len(word) <= 100 else []
    if near and _alike(_last_part(word.lower()), _last_part(near[0])):
        return by_lower[near[0]]
    return ""


def _last_part(name: str) -> str:
    """Without what arguments of one plugin have in common, `predicate.` for example."""
    return name.rpartition(".")[2]


def _alike(one: str, other: str) -> bool:
    return difflib.SequenceMatcher(None, one, other).ratio() >= 0.7
