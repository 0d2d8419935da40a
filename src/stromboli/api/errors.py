"""Errors in objects and files, with what a user needs to find and fix them."""

from collections.abc import Iterator
from typing import NamedTuple


class BadObject(ValueError):
    """An object that cannot be used: which one, which field, and what is wrong with it."""

    def __init__(self, field: str, problem: str, subject: str = "") -> None:
        self.field = field
        self.problem = problem
        self.subject = subject
        super().__init__(": ".join(part for part in (subject, field, problem) if part))

    def of(self, subject: str, inside: str = "") -> "BadObject":
        """The same error, naming its object (`Pod default/web`) and, if given, the field around it."""
        field = f"{inside}.{self.field}" if inside else self.field
        return BadObject(field, self.problem, subject)


class Unreadable(ValueError):
    """A text that is neither JSON nor YAML, or exceeds the limits of the reader."""


def quoted(value: object) -> str:
    """A value as a message quotes it: in double quotes if it is text, and never long."""
    text = f'"{value}"' if isinstance(value, str) else str(value)
    return text if len(text) <= 80 else text[:76] + "..." + text[-1]


def printable(text: str) -> str:
    """A text that comes from outside as one line without control characters, which could fool a terminal."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)


class InputProblem(NamedTuple):
    """One problem with the input: in which file, object and field."""

    file: str
    text: str
    subject: str = ""
    field: str = ""

    @classmethod
    def of(cls, file: str, error: BadObject) -> "InputProblem":
        return cls(file, error.problem, error.subject, error.field)

    def __str__(self) -> str:
        return ": ".join(printable(part) for part in (self.file, self.subject, self.field, self.text) if part)


class BadInput(ValueError):
    """Input that cannot be used as it is; the message says how to go on without the bad part."""

    def __init__(self, problems: list[InputProblem]) -> None:
        self.problems = problems
        lines = "\n".join(str(problem) for problem in problems)
        super().__init__(f"{lines}\n(--keep-going leaves out what cannot be used and lists every problem)")


class InputProblems:
    """Collects problems (`keep_going`), or raises the first."""

    def __init__(self, keep_going: bool) -> None:
        self.keep_going = keep_going
        self._problems: dict[InputProblem, None] = {}

    def add(self, problem: InputProblem) -> None:
        if not self.keep_going:
            raise BadInput([problem])
        self._problems[problem] = None

    def __iter__(self) -> Iterator[InputProblem]:
        return iter(self._problems)


def error_text(error: BaseException) -> str:
    """The type and the words of an error, also of one that cannot be printed."""
    try:
        return f"{type(error).__name__}: {error}"
    except Exception:
        return type(error).__name__
