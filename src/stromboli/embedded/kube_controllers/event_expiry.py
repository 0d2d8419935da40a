"""Events are deleted after an hour, as by the TTL that a Kubernetes API server gives them."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Sequence

from stromboli.embedded.store.object_store import Store
from stromboli.embedded.store.records import Change, Key, Record
from stromboli.embedded.time_slices import TimeSlices

EVENTS = "events"
EVENT_TTL = 3600.0


class EventExpiry:
    """The events in the order in which they expire: one entry each, at its last version."""

    def __init__(self, store: Store):
        self._store = store
        self._pending: OrderedDict[Key, tuple[float, int]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._pending)

    def _add(self, record: Record) -> None:
        self._pending[record.key] = time.monotonic() + EVENT_TTL, record.revision
        self._pending.move_to_end(record.key)

    def on_commit(self, batch: Sequence[Change]) -> None:
        for change in batch:
            if change.key.resource != EVENTS:
                continue
            if change.after is not None:
                self._add(change.after)
            else:
                self._pending.pop(change.key, None)

    def start(self) -> None:
        """Expire the events of the last run, too."""
        for record in self._store.list(EVENTS):
            self._add(record)

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
