"""What a user asked for and cannot have, as a sentence that names the option, the value and the remedy."""

from __future__ import annotations

from stromboli.api.errors import printable

LONGEST_VALUE = 60


def is_text(value: str) -> bool:
    """Whether a job can have a value: words and variables of a process may be bytes that are not UTF-8."""
    return not any("\ud800" <= char <= "\udfff" for char in value)


class BadRequest(ValueError):
    """An option of a job that cannot be used."""

    def __init__(self, option: str, value: object, problem: str) -> None:
        text = printable(str(value))
        short = text if len(text) <= LONGEST_VALUE else f"{text[:LONGEST_VALUE]}..."
        super().__init__(f"{option} {short}: {problem}" if short else f"{option}: {problem}")
