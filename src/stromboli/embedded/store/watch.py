"""One watch: the events that wait to be sent, and how they become lines.

A queue holds references only. An event is encoded when its turn comes, and then for all watches that send it at about
the same time.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Iterable, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from typing import Any, NamedTuple

import msgspec

from stromboli.embedded.kinds.kind import Kind
from stromboli.embedded.store.query_selectors import Selector
from stromboli.embedded.store.records import Change, Record
from stromboli.embedded.store.watch_buffers import Encoder, Reader, WatchBuffers

log = logging.getLogger(__name__)

LARGEST_WRITE = 32 * 1024
"""Bytes that are handed to a connection at once; the rest waits until the client has read them."""
Turns = AbstractAsyncContextManager[None]
"""Entered for each part of a response that is encoded."""
_MOST_CONSIDERED = 500
"""Queued changes that are looked at before others have their turn."""
_SMALL = 4 * 1024
"""Bytes of an object that are copied into its line; larger ones are sent from where they are stored."""
_AT_ONCE: Turns = nullcontext()


def encode_whole(record: Record, first: bool) -> bytes:
    return record.data


class Event(NamedTuple):
    """What a change means for the watches that select it alike; shared by them."""

    revision: int
    type: str
    record: Record


class Bookmark(NamedTuple):
    """How far the watch has come, without an object; `initial` ends the initial events."""

    revision: int
    initial: bool = False


def watch_event(event_type: str, content: bytes) -> bytes:
    return b'{"type":"%b","object":%b}\n' % (event_type.encode(), content)


class Watch(Reader):
    """What it selects, its revision, and the events that wait to be sent."""

    def __init__(
        self, kind: Kind, namespace: str, selector: Selector, user: str, encode: Encoder = encode_whole
    ):
        super().__init__(user)
        self.kind = kind
        self.namespace = namespace
        self.selector = selector
        self.encode = encode
        self.selects_all = not namespace and selector.empty
        self.revision = 0
        """Of the last change that was considered."""
        self.bookmarks = False
        self.buffers = WatchBuffers()
        """Those of the hub, once it has the watch."""
        self._initial: deque[Record] = deque()
        self._initial_revision = 0
        self._queue: deque[Event | Change | Bookmark] = deque()
        self._pieces: deque[memoryview] = deque()
        """The rest of the line that is being sent."""
        self._sending = 0
        """The revision of that."""
        self._first = True
        self._wake = asyncio.Event()

    def selects(self, record: Record | None) -> bool:
        if record is None or (self.namespace and record.key.namespace != self.namespace):
            return False
        return self.selects_all or self.selector.matches(record.labels, record.field)

    # -- what comes

    def begin(self, records: Iterable[Record], revision: int) -> None:
        """Queue all objects as they are at a revision; whether they are selected is seen when their turn comes."""
        self._initial.extend(records)
        self.revision = self._initial_revision = revision
        self.buffers.queue(self, len(self._initial))
        self._wake.set()

    def resume(self, changes: Sequence[Change], revision: int) -> None:
        """Queue the changes after a revision; whether they are selected is seen when their turn comes."""
        self._queue.extend(changes)
        self.revision = changes[-1].revision if changes else revision
        self.buffers.queue(self, len(changes))
        self._wake.set()

    def publish(self, change: Change, events: dict[str, Event]) -> None:
        """Queue a new change; `events` has its events by type, shared by all watches."""
        if change.revision <= self.revision:
            return
        self.revision = change.revision
        event = self._event_of(change)
        if event is not None:
            self._push(events.setdefault(event.type, event))

    def push_bookmark(self, bookmark: Bookmark) -> None:
        """Queue a bookmark, instead of the last if that waits as well."""
        if self._queue and isinstance(self._queue[-1], Bookmark) and not self._queue[-1].initial:
            self._queue[-1] = bookmark
        else:
            self._push(bookmark)

    def _push(self, event: Event | Change | Bookmark) -> None:
        if not self.ended:
            self._queue.append(event)
            self.buffers.queue(self, 1)
            self._wake.set()

    def _event_of(self, change: Change) -> Event | None:
        """An object that begins to match the selector is ADDED, one that ceases to match is DELETED."""
        matched, matches = self.selects(change.before), self.selects(change.after)
        if matches and change.after is not None:
            return Event(change.revision, "MODIFIED" if matched else "ADDED", change.after)
        record = change.tombstone or change.before
        return Event(change.revision, "DELETED", record) if matched and record is not None else None

    # -- what goes

    def end(self) -> None:
        """Nothing more comes; what is queued is still sent."""
        self.ended = True
        self._wake.set()

    def leave(self) -> None:
        """The client has left."""
        self.buffers.discard(self)
        self.end()

    def discard(self) -> None:
        for queue in (self._initial, self._queue, self._pieces):
            queue.clear()
        self._wake.set()

    @property
    def oldest_revision(self) -> int | None:
        if self._initial:
            return self._initial_revision + 1
        if self._pieces:
            return self._sending
        return self._queue[0].revision if self._queue else None

    async def next_lines(self, turns: Turns = _AT_ONCE) -> bytes:
        """Wait for events and a turn, and return as much as goes into one write; empty when the watch has ended."""
        while True:
            if self.oldest_revision is not None:
                async with turns:
                    lines = self._take_lines()
                if lines:  # otherwise the next changes are none that it selects
                    return lines
                await asyncio.sleep(0)
            elif self.ended:
                return b""
            else:
                self._wake.clear()
                await self._wake.wait()

    def _take_lines(self) -> bytes:
        self.buffers.advance(self)
        taken: list[memoryview] = []
        room = LARGEST_WRITE
        for _ in range(_MOST_CONSIDERED):
            if not self._pieces:
                self.buffers.release(self)
                self._next_line()
            while self._pieces and room:
                piece = self._pieces.popleft()
                taken.append(piece[:room])
                if len(piece) > room:
                    self._pieces.appendleft(piece[room:])
                room -= len(taken[-1])
            if not room or not (self._initial or self._queue):
                break
        if not self._pieces:
            self.buffers.release(self)
        return b"".join(taken)

    def _next_line(self) -> None:
        """Encode what is queued first; a watch that cannot ends, so that its client lists again."""
        try:
            if self._initial:
                record = self._initial.popleft()
                self.buffers.queue(self, -1)
                self._sending = self._initial_revision + 1
                if self.selects(record):
                    self._encode(Event(record.revision, "ADDED", record))
            elif self._queue:
                queued = self._queue.popleft()
                self.buffers.queue(self, -1)
                self._sending = queued.revision
                if event := self._event_of(queued) if isinstance(queued, Change) else queued:
                    self._encode(event)
        except Exception:
            log.exception("a watch of %s", self.kind.id)
            self.discard()
            self.end()

    def _encode(self, event: Event | Bookmark) -> None:
        if isinstance(event, Bookmark):
            self._pieces.append(memoryview(_encode_bookmark(self.kind, event)))
            return
        if self.encode is encode_whole and event.record.revision == event.revision:
            data = event.record.data
            if len(data) <= _SMALL:
                self._pieces.append(memoryview(watch_event(event.type, data)))
                return
            parts = (b'{"type":"%b","object":' % event.type.encode(), data, b"}\n")
            self._pieces.extend(map(memoryview, parts))
            return
        first, self._first = self._first, False
        key = (self.encode, event.revision, event.type, first)
        line = self.buffers.lines.get(key, lambda: self._encode_line(event, first))
        self._pieces.append(memoryview(line.data))
        self.buffers.hold(self, line)

    def _encode_line(self, event: Event, first: bool) -> bytes:
        record = event.record
        if record.revision != event.revision:
            record = _at_revision(record, event.revision)
        return watch_event(event.type, self.encode(record, first))


def _at_revision(record: Record, revision: int) -> Record:
    """The last version that matched, at the revision at which the object ceased to match."""
    content = record.object()
    content["metadata"]["resourceVersion"] = str(revision)
    return Record(record.key, revision, msgspec.json.encode(content))


def _encode_bookmark(kind: Kind, bookmark: Bookmark) -> bytes:
    metadata: dict[str, Any] = {"resourceVersion": str(bookmark.revision), "creationTimestamp": None}
    if bookmark.initial:
        metadata["annotations"] = {"k8s.io/initial-events-end": "true"}
    content = {"kind": kind.kind, "apiVersion": kind.api_version, "metadata": metadata}
    return watch_event("BOOKMARK", msgspec.json.encode(content))
