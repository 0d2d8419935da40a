"""The entries about one job, bounded in number and bytes: the oldest are dropped, and what repeats is counted."""

from __future__ import annotations

from collections import deque

import msgspec

from stromboli.scheduler.explain.decision_entry import DecisionEntry

MOST_JOB_ENTRIES = 40
"""Of a job; the oldest goes for a new one."""
MOST_JOB_BYTES = 16 * 1024
"""Of the entries of a job together, as they are counted by `entry_bytes`."""
LONGEST_TEXT = 1024
"""Characters of a text of an entry."""
MOST_NAMES = 8
"""Pods or nodes that an entry names."""
_OVERHEAD = 300
"""Bytes of an entry besides its texts, roughly."""


class HistoryRecord:
    """What is remembered of a job, or of the cluster."""

    __slots__ = ("bytes", "dropped", "entries", "gone_at", "phase", "uid")

    def __init__(self, uid: str = "") -> None:
        self.uid = uid
        """Of its group: another one of the same name has another history."""
        self.entries: deque[DecisionEntry] = deque()
        self.bytes = 0
        self.dropped = 0
        self.phase = ""
        """The phase that was noted last."""
        self.gone_at: float | None = None
        """When it was first seen to be gone."""

    def add(self, entry: DecisionEntry) -> int:
        """Add an entry; by how many bytes the record grows, which may be less than nothing."""
        before = self.bytes
        last = self.entries[-1] if self.entries else None
        if last is not None and _repeats(last, entry):
            self.entries[-1] = msgspec.structs.replace(last, count=last.count + 1)
            return 0
        self.entries.append(entry)
        self.bytes += entry_bytes(entry)
        while len(self.entries) > MOST_JOB_ENTRIES or (len(self.entries) > 1 and self.bytes > MOST_JOB_BYTES):
            self.bytes -= entry_bytes(self.entries.popleft())
            self.dropped += 1
        return self.bytes - before


def entry_bytes(entry: DecisionEntry) -> int:
    """What an entry takes, roughly."""
    texts = (entry.text, entry.action, entry.beneficiary, entry.chosen_by)
    named = (*entry.pod_names, *entry.nodes)
    return _OVERHEAD + 2 * sum(map(len, texts)) + sum(len(name) + 60 for name in named)


def _repeats(last: DecisionEntry, entry: DecisionEntry) -> bool:
    """Whether an entry says once more what the last one says."""
    return (
        last.kind == entry.kind
        and last.text == entry.text
        and last.action == entry.action
        and last.beneficiary == entry.beneficiary
        and last.pod_names == entry.pod_names
        and last.nodes == entry.nodes
        and last.pods == entry.pods
    )
