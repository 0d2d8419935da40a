"""The history of an object: from its timestamps and conditions, from events, and from the leader."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from msgspec import Struct

MAX_ENTRIES = 50
Source = Literal["objects", "events", "leader"]


class HistoryEntry(Struct, kw_only=True, omit_defaults=True, gc=False):
    """One thing that happened."""

    time: str
    """RFC 3339 in UTC; empty if unknown."""
    kind: str
    """`created`, `condition`, `scheduled`, `started`, `event`, or a `HistoryKind` of the leader; more may be added."""
    text: str
    count: int = 1
    """How many times, or for how many pods."""
    action: str = ""
    """The action that decided it."""
    beneficiary: str = ""
    """The job that pods were evicted for, as `namespace/name`."""
    chosen_by: str = ""
    """The plugins that chose the pods: `tier 1 (priority, gang)`."""
    source: Source = "objects"
    repeats: int = 1
    """How many times it was decided in a row; only in the memory of the leader, as readers get it in the text."""


class History(Struct, kw_only=True, omit_defaults=True):
    """Entries by time; the leader adds its own."""

    entries: list[HistoryEntry] = []
    dropped: int = 0
    """How many older entries are omitted."""
    leader: str = ""
    """The scheduler that added entries, if any."""

    def merged(self, other: History) -> History:
        """Both histories together, each entry once, the oldest first."""
        return history_of(
            [*self.entries, *other.entries], self.dropped + other.dropped, self.leader or other.leader
        )


def history_of(entries: Iterable[HistoryEntry], dropped: int = 0, leader: str = "") -> History:
    """The latest entries, the oldest first; entries with the same time and text are listed once."""
    once = {(entry.time, entry.text): entry for entry in entries}
    ordered = sorted(once.values(), key=lambda entry: entry.time)
    left_out = max(0, len(ordered) - MAX_ENTRIES)
    return History(entries=ordered[left_out:], dropped=dropped + left_out, leader=leader)
