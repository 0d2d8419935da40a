"""What is wrong with a workload: in which file, at which line, and how to mend it."""

from __future__ import annotations

from stromboli.api.errors import printable


class WorkloadError(ValueError):
    """A trace, a saved workload or the description of one that cannot be used."""

    def __init__(self, file: str, problem: str, line: int = 0) -> None:
        where = f"{file}:{line}" if line else file
        super().__init__(printable(f"{where}: {problem}"))
