"""Watches: each change is encoded once, and each connection gets everything that is new in one write."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import msgspec

from stromboli.embedded.kinds.kind import Kind
from stromboli.embedded.store.query_selectors import Selector
from stromboli.embedded.store.records import Change, Record

log = logging.getLogger(__name__)

LARGEST_WRITE = 1024 * 1024
"""Bytes that are handed to a connection at once."""
LARGEST_BACKLOG = 16 * 1024 * 1024
"""Bytes that wait for a slow client; beyond that it is disconnected, and may resume from its last resourceVersion."""

Encoder = Callable[[Record, bool], bytes]
"""Encodes the object of an event; the flag is set for the first event of a watch."""


def encode_whole(record: Record, first: bool) -> bytes:
    return record.data


def watch_event(event_type: str, content: bytes) -> bytes:
    return b'{"type":"%b","object":%b}\n' % (event_type.encode(), content)


def bookmark(kind: Kind, revision: int, initial: bool = False) -> bytes:
    """How far the watch has come, without an object; `initial` ends the initial events."""
    metadata: dict[str, Any] = {"resourceVersion": str(revision), "creationTimestamp": None}
    if initial:
        metadata["annotations"] = {"k8s.io/initial-events-end": "true"}
    content = {"kind": kind.kind, "apiVersion": kind.api_version, "metadata": metadata}
    return watch_event("BOOKMARK", msgspec.json.encode(content))


class Watch:
    """One watch: what it selects, its revision, and the events that wait to be sent."""

    def __init__(
        self, kind: Kind, namespace: str, selector: Selector, user: str, encode: Encoder = encode_whole
    ):
        self.kind = kind
        self.namespace = namespace
        self.selector = selector
        self.user = user
        """The name of the user who opened it."""
        self.encode = encode
        self.selects_all = not namespace and selector.empty
        self.revision = 0
        """Of the last change that was considered."""
        self.bookmarks = False
        self.ended = False
        self.disconnect: Callable[[], None] = lambda: None
        """Ends the connection of a client that does not keep up."""
        self._queue: deque[bytes | tuple[str, Record]] = deque()
        self._queued_bytes = 0
        """Of events since the watch began; initial events are not counted."""
        self._first = True
        self._wake = asyncio.Event()

    def selects(self, record: Record | None) -> bool:
        if record is None or (self.namespace and record.key.namespace != self.namespace):
            return False
        return self.selects_all or self.selector.matches(record.labels, record.field)

    def push(self, line: bytes) -> None:
        """Queue an encoded event; a client that leaves too many unread is disconnected."""
        if self.ended:
            return
        self._queue.append(line)
        self._queued_bytes += len(line)
        if self._queued_bytes > LARGEST_BACKLOG:
            self._queue.clear()
            self.ended = True
            self.disconnect()
        self._wake.set()

    def push_lazily(self, event_type: str, record: Record) -> None:
        """Queue an event from before the watch began, in any number: it is encoded when it is sent."""
        self._queue.append((event_type, record))
        self._wake.set()

    def end(self) -> None:
        self.ended = True
        self._wake.set()

    async def next_lines(self) -> bytes:
        """Wait for events, and return as many as go into one write; empty when the watch has ended."""
        while not self._queue and not self.ended:
            self._wake.clear()
            await self._wake.wait()
        lines, size = [], 0
        while self._queue and size < LARGEST_WRITE:
            queued = self._queue.popleft()
            if isinstance(queued, bytes):
                self._queued_bytes -= len(queued)
                line = queued
            else:
                line = self._encode_event(*queued)
            lines.append(line)
            size += len(line)
        return b"".join(lines)

    def _encode_event(self, event_type: str, record: Record) -> bytes:
        """An event in the representation that this watch asked for."""
        line = watch_event(event_type, self.encode(record, self._first))
        self._first = False
        return line

    def replay(self, change: Change) -> None:
        """Queue a change from before the watch began."""
        self.revision = change.revision
        event = self._event_of(change)
        if event is not None:
            self.push_lazily(*event)

    def publish(self, change: Change, encoded: dict[str, bytes]) -> None:
        """Queue a new change; `encoded` has its events by type, shared by all watches."""
        if change.revision <= self.revision:
            return
        self.revision = change.revision
        event = self._event_of(change)
        if event is None:
            return
        event_type, record = event
        if self.encode is not encode_whole:
            self.push(self._encode_event(event_type, record))
            return
        if event_type not in encoded:
            encoded[event_type] = watch_event(event_type, record.data)
        self.push(encoded[event_type])

    def _event_of(self, change: Change) -> tuple[str, Record] | None:
        """An object that begins to match the selector is ADDED, one that ceases to match is DELETED."""
        matched, matches = self.selects(change.before), self.selects(change.after)
        if matches and change.after is not None:
            return ("MODIFIED" if matched else "ADDED"), change.after
        record = (change.tombstone or _last_match(change)) if matched else None
        return ("DELETED", record) if record is not None else None


def _last_match(change: Change) -> Record | None:
    """The version before the change, at the revision at which it ceased to match."""
    if change.before is None:
        return None
    content = change.before.object()
    content["metadata"]["resourceVersion"] = str(change.revision)
    return Record(change.key, change.revision, msgspec.json.encode(content))


class WatchHub:
    """All open watches, by resource."""

    def __init__(self, limit: int):
        self._watches: dict[str, list[Watch]] = {}
        self._limit = limit
        self.revision = 0
        """Of the last change that was published."""

    @property
    def full(self) -> bool:
        return sum(map(len, self._watches.values())) >= self._limit

    def add(self, watch: Watch) -> None:
        self._watches.setdefault(watch.kind.id, []).append(watch)

    def remove(self, watch: Watch) -> None:
        self._watches[watch.kind.id].remove(watch)

    def __iter__(self) -> Iterator[Watch]:
        return iter([watch for watches in self._watches.values() for watch in watches])

    def publish(self, batch: Sequence[Change]) -> None:
        self.revision = batch[-1].revision
        for change in batch:
            watches = self._watches.get(change.key.resource)
            if watches:
                encoded: dict[str, bytes] = {}
                for watch in watches:
                    _publish(watch, change, encoded)

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
            watch.push(bookmark(watch.kind, max(self.revision, watch.revision)))


def _publish(watch: Watch, change: Change, encoded: dict[str, bytes]) -> None:
    """A watch that cannot encode a change ends, so that its client lists again; the others go on."""
    try:
        watch.publish(change, encoded)
    except Exception:
        log.exception("a watch of %s", watch.kind.id)
        watch.end()
