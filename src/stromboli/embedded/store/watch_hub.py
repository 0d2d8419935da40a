"""Changes, handed to everybody who watches: each is encoded once, and each connection gets what is new in one write."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import msgspec

from stromboli.embedded.kinds.kind import Kind
from stromboli.embedded.store.query_selectors import Selector
from stromboli.embedded.store.records import Change, Record

log = logging.getLogger(__name__)

LARGEST_WRITE = 1024 * 1024
"""Bytes after which a reader is waited for."""
LARGEST_BACKLOG = 16 * 1024 * 1024
"""Bytes that wait for a slow reader, who is cut off beyond that and may resume where it was."""

Form = Callable[[Record, bool], bytes]
"""How an object is shown; the flag says whether this is the first in the stream."""


def _nothing() -> None:
    pass


def plain(record: Record, first: bool) -> bytes:
    return record.data


def event(kind: str, content: bytes) -> bytes:
    return b'{"type":"%b","object":%b}\n' % (kind.encode(), content)


def bookmark(kind: Kind, revision: int, initial: bool = False) -> bytes:
    """How far the stream has come, without an object."""
    metadata: dict[str, Any] = {"resourceVersion": str(revision), "creationTimestamp": None}
    if initial:
        metadata["annotations"] = {"k8s.io/initial-events-end": "true"}
    content = {"kind": kind.kind, "apiVersion": kind.api_version, "metadata": metadata}
    return event("BOOKMARK", msgspec.json.encode(content))


class Watch:
    """One stream: who is meant, where it stands, and what waits to be sent."""

    def __init__(self, kind: Kind, namespace: str, selector: Selector, form: Form = plain):
        self.kind = kind
        self.namespace = namespace
        self.selector = selector
        self.form = form
        self.everything = not namespace and not selector.labels and not selector.fields
        self.revision = 0
        """Of the last change that was looked at."""
        self.bookmarks = False
        self.ended = False
        self.cut: Callable[[], None] = _nothing
        """What ends the connection of a reader who does not keep up."""
        self._waiting: deque[bytes | tuple[str, Record]] = deque()
        self._size = 0
        """Bytes that wait of what has happened since the stream began."""
        self._first = True
        self._news = asyncio.Event()

    def meant(self, record: Record | None) -> bool:
        if record is None or (self.namespace and record.key.namespace != self.namespace):
            return False
        return self.everything or self.selector.matches(record.labels, record.field)

    def push(self, line: bytes) -> None:
        """Something that has just happened; whoever leaves too much of that unread is cut off."""
        if self.ended:
            return
        self._waiting.append(line)
        self._size += len(line)
        if self._size > LARGEST_BACKLOG:
            self._waiting.clear()
            self.ended = True
            self.cut()
        self._news.set()

    def show(self, kind: str, record: Record) -> None:
        """Something from before: only encoded when its turn comes, so that it may be any number."""
        self._waiting.append((kind, record))
        self._news.set()

    def end(self) -> None:
        self.ended = True
        self._news.set()

    async def news(self) -> bytes:
        """What came since, as much as goes into one write; waits for something. Empty when there is nothing more."""
        while not self._waiting and not self.ended:
            self._news.clear()
            await self._news.wait()
        lines, size = [], 0
        while self._waiting and size < LARGEST_WRITE:
            one = self._waiting.popleft()
            if isinstance(one, bytes):
                self._size -= len(one)
            else:
                one = self._shown(*one)
            lines.append(one)
            size += len(one)
        return b"".join(lines)

    def _shown(self, kind: str, record: Record) -> bytes:
        """An event in this stream's own form."""
        line = event(kind, self.form(record, self._first))
        self._first = False
        return line

    def replay(self, change: Change) -> None:
        """A change that was missed."""
        self.revision = change.revision
        seen = self._seen(change)
        if seen is not None:
            self.show(*seen)

    def tell(self, change: Change, encoded: dict[str, bytes]) -> None:
        """A change that has just happened; `encoded` is shared with all who are told of it."""
        if change.revision <= self.revision:
            return
        self.revision = change.revision
        seen = self._seen(change)
        if seen is None:
            return
        kind, record = seen
        if self.form is not plain:
            self.push(self._shown(kind, record))
            return
        if kind not in encoded:
            encoded[kind] = event(kind, record.data)
        self.push(encoded[kind])

    def _seen(self, change: Change) -> tuple[str, Record] | None:
        """A change as it looks from here: what begins to be meant is added, what ceases to be is deleted."""
        known, now = self.meant(change.before), self.meant(change.after)
        if now and change.after is not None:
            return ("MODIFIED" if known else "ADDED"), change.after
        record = (change.gone or _as_of(change)) if known else None
        return ("DELETED", record) if record is not None else None


def _as_of(change: Change) -> Record | None:
    """What ceases to be meant is shown as it was, at the revision at which it ceased."""
    if change.before is None:
        return None
    content = change.before.object()
    content["metadata"]["resourceVersion"] = str(change.revision)
    return Record(change.key, change.revision, msgspec.json.encode(content))


def _told(watch: Watch, change: Change, encoded: dict[str, bytes]) -> None:
    """A stream that cannot show a change ends, so that its reader lists again; the others go on."""
    try:
        watch.tell(change, encoded)
    except Exception:
        log.exception("a watch of %s", watch.kind.id)
        watch.end()


class Hub:
    """Everybody who watches, by kind."""

    def __init__(self, most: int):
        self._watches: dict[str, list[Watch]] = {}
        self._most = most
        self._count = 0
        self.revision = 0
        """Of the last change that was published."""

    @property
    def full(self) -> bool:
        return self._count >= self._most

    def join(self, watch: Watch) -> None:
        self._watches.setdefault(watch.kind.id, []).append(watch)
        self._count += 1

    def leave(self, watch: Watch) -> None:
        self._watches[watch.kind.id].remove(watch)
        self._count -= 1

    def all(self, resource: str = "") -> Iterable[Watch]:
        if resource:
            return tuple(self._watches.get(resource, ()))
        return [watch for watches in self._watches.values() for watch in watches]

    def publish(self, batch: Sequence[Change]) -> None:
        self.revision = batch[-1].revision
        for change in batch:
            watches = self._watches.get(change.key.resource)
            if watches:
                encoded: dict[str, bytes] = {}
                for watch in watches:
                    _told(watch, change, encoded)

    def remind(self) -> None:
        """Tell those who want to know how far they are, so that they can resume from there after a quiet time."""
        for watch in self.all():
            if watch.bookmarks:
                watch.push(bookmark(watch.kind, max(self.revision, watch.revision)))

    def finish(self, watch: Watch) -> None:
        """Its time is over; what waits is still sent."""
        if watch.bookmarks:
            watch.push(bookmark(watch.kind, max(self.revision, watch.revision)))
        watch.end()
