"""A spot in an object that somebody sent: its path, what stands there, and what is wrong with it.

Nothing is taken for granted: a list may be missing, a number may be a word. What has the wrong type is reported and
counts as absent, so that every rule reads as if the object were well formed and no rule ever raises.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

MOST = 50
"""Problems worth telling at once."""
_LONGEST = 64


class Problem(NamedTuple):
    """One thing that is wrong: where, what stands there, what Volcano's users read about it, and the way out."""

    field: str
    value: Any
    text: str
    way_out: str = ""
    shows_field: bool = False
    """Whether the text names field and value already."""

    def __str__(self) -> str:
        where = []
        if not self.shows_field:
            where.append(self.field if self.value is None else f"{self.field}: {shown(self.value)}")
        if self.way_out:
            where.append(self.way_out)
        text = self.text.strip(" ;")
        return f"{text} ({'; '.join(where)})" if where else text


class Report:
    """Problems, each told once, in the order they were found."""

    def __init__(self) -> None:
        self._found: dict[str, Problem] = {}
        self.untold = 0

    def add(self, problem: Problem) -> None:
        if len(self._found) < MOST or str(problem) in self._found:
            self._found[str(problem)] = problem
        else:
            self.untold += 1

    def __iter__(self) -> Iterator[Problem]:
        return iter(self._found.values())

    def __bool__(self) -> bool:
        return bool(self._found)

    def __str__(self) -> str:
        more = [f"and {self.untold} more"] if self.untold else []
        return "; ".join([*self._found, *more])


class Place:
    """What stands at a path; missing things are places, too."""

    __slots__ = ("called", "path", "report", "value")

    def __init__(self, value: Any, report: Report, path: str = "", called: str | None = None) -> None:
        self.value = value
        self.report = report
        self.path = path
        self.called = path if called is None else called
        """The path as Volcano's messages write it."""

    def __getitem__(self, key: str) -> Place:
        """The field of that name."""
        inside = self._of_type(dict, "must be an object") or {}
        dot = "." if self.path else ""
        return Place(inside.get(key), self.report, f"{self.path}{dot}{key}", f"{self.called}{dot}{key}")

    def items(self) -> list[Place]:
        """The elements of a list."""
        return [
            Place(value, self.report, f"{self.path}[{index}]", f"{self.called}[{index}]")
            for index, value in enumerate(self._of_type(list, "must be a list") or ())
        ]

    def entries(self) -> Iterator[tuple[str, Place]]:
        """The keys and values of a map."""
        for key in self._of_type(dict, "must be an object") or {}:
            yield key, self[key]

    @property
    def given(self) -> bool:
        return self.value is not None

    def text(self, default: str = "") -> str:
        found = self._of_type(str, "must be a string")
        return default if found is None else found

    def number(self, default: int = 0) -> int:
        if isinstance(self.value, bool):
            self.invalid("must be an integer")
            return default
        found = self._of_type(int, "must be an integer")
        return default if found is None else found

    def yes(self) -> bool:
        return self._of_type(bool, "must be true or false") is True

    def texts(self) -> list[str]:
        """The strings of a list."""
        return [place.text() for place in self.items()]

    def mapping(self) -> Mapping[str, Any]:
        return self._of_type(dict, "must be an object") or {}

    def renamed(self, called: str) -> Place:
        """The same place under the name that messages give it."""
        return Place(self.value, self.report, self.path, called)

    def wrong(self, text: str, way_out: str = "") -> None:
        """Report a problem in words of its own."""
        self.report.add(Problem(self.path, self.value, text, way_out))

    def required(self, detail: str = "", way_out: str = "") -> None:
        self._say("Required value", detail, way_out, valued=False)

    def invalid(self, detail: str, way_out: str = "") -> None:
        self._say("Invalid value", detail, way_out)

    def forbidden(self, detail: str, way_out: str = "") -> None:
        self._say("Forbidden", detail, way_out, valued=False)

    def duplicate(self, way_out: str = "give each its own") -> None:
        self._say("Duplicate value", "", way_out)

    def not_found(self, way_out: str = "") -> None:
        self._say("Not found", "", way_out)

    def unsupported(self, supported: Iterable[str]) -> None:
        values = ", ".join(f'"{value}"' for value in supported)
        self._say("Unsupported value", f"supported values: {values}", "")

    def _say(self, what: str, detail: str, way_out: str, valued: bool = True) -> None:
        parts = [self.called, what, *([shown(self.value)] if valued else []), *([detail] if detail else [])]
        self.report.add(Problem(self.path, self.value, ": ".join(parts), way_out, shows_field=True))

    def _of_type(self, wanted: type, otherwise: str) -> Any:
        if self.value is None or isinstance(self.value, wanted):
            return self.value
        self.invalid(otherwise)
        return None


def shown(value: Any) -> str:
    """A value as a message shows it, never at length."""
    if isinstance(value, dict | list):
        return f"{len(value)} entries" if isinstance(value, dict) else f"a list of {len(value)}"
    if isinstance(value, int) and value.bit_length() > 256:
        return f"an integer of {value.bit_length()} bits"
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _LONGEST else text[:_LONGEST] + "..."
