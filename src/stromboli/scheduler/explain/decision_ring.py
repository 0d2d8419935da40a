"""A bounded ring of decision entries: it drops the oldest entries for new ones, and merges entries that repeat."""

from __future__ import annotations

from collections import deque
from typing import Generic, TypeVar

from msgspec import Struct

from stromboli.engine.decisions import Bind, Evict, GateRemoval
from stromboli.scheduler.explain.cycle_documents import DecisionKind

RecordedDecision = Bind | Evict | GateRemoval
"""The decisions about pods that are recorded."""
Entry = TypeVar("Entry", bound=Struct)


class DecisionRing(Generic[Entry]):
    """Entries about a job, about cycles or about policies, the newest last."""

    __slots__ = ("_max_bytes", "_max_entries", "bytes", "dropped", "entries")

    def __init__(self, max_entries: int, max_bytes: int) -> None:
        self._max_entries = max_entries
        self._max_bytes = max_bytes
        self.entries: deque[Entry] = deque()
        self.bytes = 0
        """The size of all entries."""
        self.dropped = 0
        """How many entries were dropped for newer ones."""

    def size(self, entry: Entry) -> int:
        """The bytes that an entry takes."""
        raise NotImplementedError

    def joined(self, last: Entry, entry: Entry) -> Entry | None:
        """The last entry with a new one, if both make one entry."""
        raise NotImplementedError

    def add(self, entry: Entry) -> int:
        """Add an entry; return by how many bytes the ring grows, which may be negative."""
        before = self.bytes
        joined = self.joined(self.entries[-1], entry) if self.entries else None
        if joined is not None:
            self.bytes -= self.size(self.entries.pop())
        self.entries.append(entry if joined is None else joined)
        self.bytes += self.size(self.entries[-1])
        while len(self.entries) > self._max_entries or self.bytes > self._max_bytes:
            self.bytes -= self.size(self.entries.popleft())
            self.dropped += 1
        return self.bytes - before


def decision_kind(decision: RecordedDecision) -> DecisionKind:
    match decision:
        case Bind():
            return "bound"
        case Evict():
            return "moved" if decision.destination else "evicted"
    return "gate-removed"
