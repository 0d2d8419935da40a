"""The changes that watches may still ask for: bounded in number and in bytes, the oldest dropped first."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence

from stromboli.embedded.store.records import Change
from stromboli.embedded.store.version_log import MOST_DELETED, Compaction

HISTORY_LIMIT = 50_000
"""Changes that a watch may still ask for."""
HISTORY_BYTES = 256 * 1024 * 1024
"""Bytes of the versions that have been superseded and are kept for watches, in memory and in the file alike."""
CHANGE_BYTES = 512
"""What a change takes beside its versions."""


def kept_bytes(change: Change) -> int:
    """What a change keeps that is not live: the version before it, and that of a deletion."""
    size = CHANGE_BYTES
    if change.before is not None:
        size += len(change.before.data)
    if change.tombstone is not None:
        size += len(change.tombstone.data)
    return size


class History:
    """Committed changes, oldest first."""

    def __init__(self, limit: int = HISTORY_LIMIT, byte_limit: int = HISTORY_BYTES):
        self._limit = limit
        self._byte_limit = byte_limit
        self._changes: deque[Change] = deque()
        self.bytes = 0
        self._latest = 0
        """Changes of the last batch, which watches have only just been sent."""
        self._expired = 0
        """Oldest changes that are to be dropped whatever the limits."""

    def __len__(self) -> int:
        return len(self._changes)

    def __reversed__(self) -> Iterator[Change]:
        return reversed(self._changes)

    def extend(self, batch: Sequence[Change]) -> None:
        """Add a batch, which stays at least until the next one comes."""
        self._changes.extend(batch)
        self.bytes += sum(map(kept_bytes, batch))
        self._latest = len(batch)

    def surplus(self, coming: Sequence[Change] = ()) -> Compaction | None:
        """The oldest changes beyond the limits once a batch has come, as many as one transaction may delete.

        Some more are dropped than must be, so that this is seldom.
        """
        count = len(self._changes) + len(coming) - self._limit
        size = self.bytes + sum(map(kept_bytes, coming)) - self._byte_limit
        if count > 0 or size > 0:
            count, size = count + self._limit // 64, size + self._byte_limit // 64
        elif not self._expired:
            return None
        recent = 0 if coming else self._latest
        return self._oldest(max(count, self._expired), size, max(len(self._changes) - recent, self._expired))

    def _oldest(self, count: int, size: int, most: int) -> Compaction | None:
        revision, rows = 0, list[int]()
        for number, change in enumerate(self._changes):
            if (number >= count and size <= 0) or number == most or len(rows) >= MOST_DELETED - 1:
                break
            revision = change.revision
            size -= kept_bytes(change)
            if change.before is not None:
                rows.append(change.before.revision)
            if change.tombstone is not None:
                rows.append(revision)
        return Compaction(revision, rows) if revision else None

    def expire(self) -> None:
        """Let everything be surplus that is there now."""
        self._expired = len(self._changes)

    def drop(self, revision: int) -> None:
        """Forget the changes up to a revision."""
        while self._changes and self._changes[0].revision <= revision:
            self.bytes -= kept_bytes(self._changes.popleft())
            self._expired = max(self._expired - 1, 0)
