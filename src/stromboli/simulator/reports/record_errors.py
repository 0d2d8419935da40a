"""What is wrong with the record of a simulation: in which file, and how to mend it."""

from __future__ import annotations

from stromboli.api.errors import printable


class RecordError(ValueError):
    """A file that is no record of a simulation, or one that cannot be used."""

    def __init__(self, file: str, problem: str) -> None:
        super().__init__(printable(f"{file}: {problem}"))
