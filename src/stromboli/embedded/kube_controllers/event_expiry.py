"""Events are deleted after an hour, as by the TTL that a Kubernetes API server gives them."""

from __future__ import annotations

import time
from collections import OrderedDict

from stromboli.embedded.store.object_store import Store
from stromboli.embedded.store.records import Change, Key, Record
from stromboli.embedded.time_slices import TimeSlices

EVENT_TTL = 3600.0


class EventExpiry:
    """The events in the order in which they expire: one entry each, at its last version."""

    def __init__(self, store: Store):
        self._store = store
        self._pending: OrderedDict[Key, tuple[float, int]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._pending)

    def add(self, record: Record) -> None:
        self._pending[record.key] = time.monotonic() + EVENT_TTL, record.revision
        self._pending.move_to_end(record.key)

    def observe(self, change: Change) -> None:
        """Follow a committed change of an event."""
        if change.after is not None:
            self.add(change.after)
        else:
            self._pending.pop(change.key, None)

    async def expire(self) -> None:
        """Delete events whose last version is too old."""
        now, slices = time.monotonic(), TimeSlices()
        while self._pending:
            key, (expiry, revision) = next(iter(self._pending.items()))
            if expiry >= now:
                break
            del self._pending[key]
            record = self._store.get(*key)
            if record is not None and record.revision == revision:
                self._store.remove(key, record.object())
            if slices.due:
                await slices.pause()
