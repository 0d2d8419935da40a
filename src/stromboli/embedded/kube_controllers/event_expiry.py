"""Events are deleted after an hour, as by the TTL that a Kubernetes API server gives them."""

from __future__ import annotations

import time
from collections import deque

from stromboli.embedded.store.object_store import Store
from stromboli.embedded.store.records import Key, Record
from stromboli.embedded.time_slices import TimeSlices

EVENT_TTL = 3600.0


class EventExpiry:
    """Versions of events, in the order in which they expire."""

    def __init__(self, store: Store):
        self._store = store
        self._pending: deque[tuple[float, Key, int]] = deque()

    def add(self, record: Record) -> None:
        self._pending.append((time.monotonic() + EVENT_TTL, record.key, record.revision))

    async def expire(self) -> None:
        """Delete events whose last version is too old."""
        now, slices = time.monotonic(), TimeSlices()
        while self._pending and self._pending[0][0] < now:
            _, key, revision = self._pending.popleft()
            record = self._store.get(*key)
            if record is not None and record.revision == revision:
                self._store.remove(key, record.object())
            if slices.due:
                await slices.pause()
