"""A field of an object under review: its path, its value, and the problems with it.

The object may have any form. A value of the wrong type is reported and counts as absent, so that rules can be written
as if the object were well formed, and never raise.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from stromboli.api.schemas.schema_problems import (
    MAX_PROBLEMS,
    VOLCANO,
    Problem,
    child_path,
    duplicate,
    forbidden,
    invalid,
    item_path,
    not_found,
    required,
    unsupported,
)


class Report:
    """Distinct problems in the order in which they were found, up to a maximum; the rest is counted."""

    def __init__(self) -> None:
        self._problems: dict[str, Problem] = {}
        self.omitted = 0

    def add(self, problem: Problem) -> None:
        text = problem.with_remedy
        if len(self._problems) < MAX_PROBLEMS or text in self._problems:
            self._problems[text] = problem
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
        value = self.mapping().get(key)
        return Field(value, self.report, child_path(self.path, key), child_path(self.shown_path, key))

    def items(self) -> list[Field]:
        """The elements of a list."""
        return [
            Field(value, self.report, item_path(self.path, index), item_path(self.shown_path, index))
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
        """Report a problem with a message of Volcano's."""
        self._add(Problem(self.path, VOLCANO, text), remedy)

    def required(self, detail: str = "", remedy: str = "") -> None:
        self._add(required(self.path, detail), remedy)

    def invalid(self, detail: str, remedy: str = "") -> None:
        self._add(invalid(self.path, self.value, detail), remedy)

    def forbidden(self, detail: str, remedy: str = "") -> None:
        self._add(forbidden(self.path, detail), remedy)

    def duplicate(self, remedy: str = "give each its own") -> None:
        self._add(duplicate(self.path, self.value), remedy)

    def not_found(self, remedy: str = "") -> None:
        self._add(not_found(self.path, self.value), remedy)

    def unsupported(self, supported: Iterable[str]) -> None:
        self._add(unsupported(self.path, self.value, tuple(supported)), "")

    def _add(self, problem: Problem, remedy: str) -> None:
        self.report.add(problem._replace(remedy=remedy, value=self.value, shown_path=self.shown_path))

    def _of_type(self, wanted: type, detail: str) -> Any:
        if self.value is None or isinstance(self.value, wanted):
            return self.value
        self.invalid(detail)
        return None
