"""A field of an object under review: its path, its value, and the problems with it.

The object may have any form. A value of the wrong type is reported and counts as absent, so that rules can be written
as if the object were well formed, and never raise.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

MAX_PROBLEMS = 50
_MAX_VALUE_LENGTH = 64


class Problem(NamedTuple):
    """One problem: the field and its value, the message (Volcano's where it has one), and how to mend it."""

    field: str
    value: Any
    text: str
    remedy: str = ""
    shows_field: bool = False
    """Whether the text names field and value already."""

    def __str__(self) -> str:
        where = []
        if not self.shows_field:
            where.append(self.field if self.value is None else f"{self.field}: {format_value(self.value)}")
        if self.remedy:
            where.append(self.remedy)
        text = self.text.strip(" ;")
        return f"{text} ({'; '.join(where)})" if where else text


class Report:
    """Distinct problems in the order in which they were found, up to a maximum; the rest is counted."""

    def __init__(self) -> None:
        self._problems: dict[str, Problem] = {}
        self.omitted = 0

    def add(self, problem: Problem) -> None:
        if len(self._problems) < MAX_PROBLEMS or str(problem) in self._problems:
            self._problems[str(problem)] = problem
        else:
            self.omitted += 1

    def __iter__(self) -> Iterator[Problem]:
        return iter(self._problems.values())

    def __bool__(self) -> bool:
        return bool(self._problems)

    def __str__(self) -> str:
        more = [f"and {self.omitted} more"] if self.omitted else []
        return "; ".join([*self._problems, *more])


class Field:
    """A field by its path; one that is missing has no value."""

    __slots__ = ("path", "report", "shown_path", "value")

    def __init__(self, value: Any, report: Report, path: str = "", shown_path: str | None = None) -> None:
        self.value = value
        self.report = report
        self.path = path
        self.shown_path = path if shown_path is None else shown_path
        """The path as Volcano's messages write it."""

    def __getitem__(self, key: str) -> Field:
        """The field of that name."""
        dot = "." if self.path else ""
        return Field(
            self.mapping().get(key), self.report, f"{self.path}{dot}{key}", f"{self.shown_path}{dot}{key}"
        )

    def items(self) -> list[Field]:
        """The elements of a list."""
        return [
            Field(value, self.report, f"{self.path}[{index}]", f"{self.shown_path}[{index}]")
            for index, value in enumerate(self._of_type(list, "must be a list") or ())
        ]

    def entries(self) -> Iterator[tuple[str, Field]]:
        """The keys and values of a map."""
        for key in self.mapping():
            yield key, self[key]

    @property
    def given(self) -> bool:
        return self.value is not None

    def text(self, default: str = "") -> str:
        value: str | None = self._of_type(str, "must be a string")
        return default if value is None else value

    def number(self, default: int = 0) -> int:
        if isinstance(self.value, bool):
            self.invalid("must be an integer")
            return default
        value: int | None = self._of_type(int, "must be an integer")
        return default if value is None else value

    def boolean(self) -> bool:
        return self._of_type(bool, "must be true or false") is True

    def texts(self) -> list[str]:
        """The strings of a list."""
        return [field.text() for field in self.items()]

    def mapping(self) -> Mapping[str, Any]:
        return self._of_type(dict, "must be an object") or {}

    def renamed(self, shown_path: str) -> Field:
        """The same field under the path that messages show."""
        return Field(self.value, self.report, self.path, shown_path)

    def wrong(self, text: str, remedy: str = "") -> None:
        """Report a problem with a message of its own."""
        self.report.add(Problem(self.path, self.value, text, remedy))

    def required(self, detail: str = "", remedy: str = "") -> None:
        self._add("Required value", detail, remedy, with_value=False)

    def invalid(self, detail: str, remedy: str = "") -> None:
        self._add("Invalid value", detail, remedy)

    def forbidden(self, detail: str, remedy: str = "") -> None:
        self._add("Forbidden", detail, remedy, with_value=False)

    def duplicate(self, remedy: str = "give each its own") -> None:
        self._add("Duplicate value", "", remedy)

    def not_found(self, remedy: str = "") -> None:
        self._add("Not found", "", remedy)

    def unsupported(self, supported: Iterable[str]) -> None:
        values = ", ".join(f'"{value}"' for value in supported)
        self._add("Unsupported value", f"supported values: {values}", "")

    def _add(self, error: str, detail: str, remedy: str, with_value: bool = True) -> None:
        parts = [
            self.shown_path,
            error,
            *([format_value(self.value)] if with_value else []),
            *([detail] if detail else []),
        ]
        self.report.add(Problem(self.path, self.value, ": ".join(parts), remedy, shows_field=True))

    def _of_type(self, wanted: type, detail: str) -> Any:
        if self.value is None or isinstance(self.value, wanted):
            return self.value
        self.invalid(detail)
        return None


def format_value(value: Any) -> str:
    """A value as messages show it, cut short if it is long."""
    if isinstance(value, dict | list):
        return f"{len(value)} entries" if isinstance(value, dict) else f"a list of {len(value)}"
    if isinstance(value, int) and value.bit_length() > 256:
        return f"an integer of {value.bit_length()} bits"
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _MAX_VALUE_LENGTH else text[:_MAX_VALUE_LENGTH] + "..."
