"""Which pools changed hands and which nodes got other devices, so that only those are looked at again."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from stromboli.model.devices.allocator import PoolId

LONGEST_LOG = 4096
"""Changes of pools that are remembered; whoever is further behind looks at all nodes."""


class ChangeLog:
    """Pools in the order in which their devices changed hands, and names of nodes whose devices are others."""

    def __init__(self) -> None:
        self._changes: list[PoolId | str] = []
        self._forgotten = 0
        """How many were dropped from the front."""

    @property
    def position(self) -> int:
        """How many changes there were in all."""
        return self._forgotten + len(self._changes)

    def note(self, change: PoolId | str) -> None:
        if len(self._changes) >= 2 * LONGEST_LOG:
            del self._changes[:LONGEST_LOG]
            self._forgotten += LONGEST_LOG
        self._changes.append(change)

    def since(self, position: int) -> set[PoolId | str] | None:
        """What changed since a position; none if that is too long ago to tell."""
        if position < self._forgotten:
            return None
        return set(self._changes[position - self._forgotten :])
