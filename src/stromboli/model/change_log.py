"""What changed, in order, so that whoever follows it looks at that alone."""

from __future__ import annotations

from typing import Generic, TypeVar

T = TypeVar("T")

LONGEST_LOG = 4096
"""Changes that are remembered; whoever is further behind looks at everything."""


class ChangeLog(Generic[T]):
    """Names, or other ids, in the order in which what they stand for changed."""

    def __init__(self) -> None:
        self._changes: list[T] = []
        self._forgotten = 0
        """How many were dropped from the front."""

    @property
    def position(self) -> int:
        """How many changes there were in all."""
        return self._forgotten + len(self._changes)

    def note(self, change: T) -> None:
        if len(self._changes) >= 2 * LONGEST_LOG:
            del self._changes[:LONGEST_LOG]
            self._forgotten += LONGEST_LOG
        self._changes.append(change)

    def note_everything(self) -> None:
        """All is different now: whoever follows looks at everything."""
        self._forgotten += len(self._changes) + 1
        self._changes.clear()

    def since(self, position: int) -> set[T] | None:
        """What changed since a position; none if that is too long ago to tell."""
        if position < self._forgotten:
            return None
        return set(self._changes[position - self._forgotten :])
