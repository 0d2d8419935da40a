"""A bounded ring of entries about decisions: the oldest are dropped for new ones, and what repeats is one entry."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Generic, NamedTuple, TypeVar

from msgspec import Struct

Entry = TypeVar("Entry", bound=Struct)


class RingBounds(NamedTuple):
    """How many entries a ring keeps, and how many bytes they take together."""

    entries: int
    bytes: int


class DecisionRing(Generic[Entry]):
    """Entries about a job, about cycles or about policies, the newest last."""

    __slots__ = ("_join", "_size", "bytes", "dropped", "entries")

    def __init__(self, size: Callable[[Entry], int], join: Callable[[Entry, Entry], Entry | None]) -> None:
        """`size`: the bytes of an entry. `join`: the last entry with a new one, if both are one entry."""
        self._size = size
        self._join = join
        self.entries: deque[Entry] = deque()
        self.bytes = 0
        """Of all entries."""
        self.dropped = 0
        """How many entries were dropped for newer ones."""

    def add(self, entry: Entry, bounds: RingBounds) -> int:
        """Add an entry; by how many bytes the ring grows, which may be less than nothing."""
        before = self.bytes
        joined = self._join(self.entries[-1], entry) if self.entries else None
        if joined is not None:
            self.bytes -= self._size(self.entries.pop())
        self.entries.append(entry if joined is None else joined)
        self.bytes += self._size(self.entries[-1])
        while len(self.entries) > bounds.entries or self.bytes > bounds.bytes:
            self.bytes -= self._size(self.entries.popleft())
            self.dropped += 1
        return self.bytes - before
