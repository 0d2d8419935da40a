"""All open watches: each change is handed to those that select it."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import Iterator, Sequence

from stromboli.embedded.kinds.builtin.custom_resource_definition import DEFINITIONS
from stromboli.embedded.store.records import Change
from stromboli.embedded.store.watch import Bookmark, Event, Watch
from stromboli.embedded.store.watch_buffers import WatchBuffers
from stromboli.embedded.time_slices import SLICE

log = logging.getLogger(__name__)


class WatchHub:
    """The watches by resource, and what they hold together."""

    def __init__(self, buffers: WatchBuffers | None = None):
        self._watches: dict[str, list[Watch]] = {}
        self.buffers = buffers or WatchBuffers()
        self.revision = 0
        """Of the last change that was published."""
        self._pending: deque[Change] = deque()
        """Changes that are still to be published."""

    def add(self, watch: Watch) -> None:
        watch.buffers = self.buffers
        self.buffers.add(watch)
        self._watches.setdefault(watch.kind.id, []).append(watch)

    def remove(self, watch: Watch) -> None:
        self.buffers.remove(watch)
        self._watches[watch.kind.id].remove(watch)

    def __iter__(self) -> Iterator[Watch]:
        return iter([watch for watches in self._watches.values() for watch in watches])

    def publish(self, batch: Sequence[Change]) -> None:
        """Hand on changes, in order: at once, or with pauses where many changes meet many watches."""
        is_first = not self._pending
        self._pending.extend(batch)
        if is_first:
            self._publish_pending()

    def _publish_pending(self) -> None:
        end = time.monotonic() + SLICE
        while self._pending:
            change, events = self._pending[0], dict[str, Event]()
            for watch in self._watches.get(change.key.resource, ()):
                _publish(watch, change, events)
            if change.key.resource == DEFINITIONS and change.before is not None:
                self._end_watches_of(change)
            self.revision = change.revision
            self._pending.popleft()
            if self._pending and time.monotonic() >= end:
                asyncio.get_running_loop().call_soon(self._publish_pending)
                return

    def _end_watches_of(self, definition: Change) -> None:
        """End the watches of a kind that is no longer defined, or otherwise: their objects have other fields."""
        before, after = definition.before, definition.after
        if before is not None and after is not None and before.object()["spec"] == after.object()["spec"]:
            return
        for watch in self._watches.get(definition.key.name, ()):
            if watch.revision < definition.revision:
                watch.end()

    async def caught_up(self) -> None:
        """Until everything is published."""
        while self._pending:
            await asyncio.sleep(0)

    def send_bookmarks(self) -> None:
        """So that clients can resume from a recent revision after a quiet time."""
        for watch in self:
            self._send_bookmark(watch)

    def time_out(self, watch: Watch) -> None:
        """End a watch whose time is over; queued events are still sent."""
        self._send_bookmark(watch)
        watch.end()

    def _send_bookmark(self, watch: Watch) -> None:
        if watch.bookmarks:
            watch.push_bookmark(Bookmark(max(self.revision, watch.revision)))


def _publish(watch: Watch, change: Change, events: dict[str, Event]) -> None:
    """A watch that cannot read a change ends, so that its client lists again; the others go on."""
    try:
        watch.publish(change, events)
    except Exception:
        log.exception("a watch of %s", watch.kind.id)
        watch.end()
