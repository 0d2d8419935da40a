"""What clients hold that read slowly: bounded in bytes, for all of them and for each user.

A version that waits to be sent is the one in the store, live or in history, so it takes nothing more. A reader whose
next version has left history is cut off, and so versions are never kept for the sake of a reader. What remains are the
references in the queues of watches and the lines that were encoded for them. They are counted here, a line that several
readers send once for each user and once in all. Beyond a limit, who has taken nothing for the longest time is cut off:
of the user who holds too much, or of all.
"""

from __future__ import annotations

import logging
import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Hashable, Iterator
from itertools import count
from typing import Protocol

from stromboli.embedded.store.records import Record

log = logging.getLogger(__name__)

WATCH_BYTES = 256 * 1024 * 1024
"""References and encoded lines that wait for all readers together."""
USER_WATCH_BYTES = WATCH_BYTES // 4
"""Those that wait for the readers of one user."""
REFERENCE_BYTES = 8
"""What an event takes in the queue of a watch."""
LINE_CACHE_BYTES = 16 * 1024 * 1024
"""Encoded lines that are kept for the next watch that sends the same event."""
LINE_LIFETIME = 1.0
"""Seconds for which a line is sent to others: it may tell an age."""


class Encoder(Hashable, Protocol):
    """Encodes an object; equal encoders encode it equally."""

    def __call__(self, record: Record, first: bool) -> bytes:
        """`first` is set for the first event of a watch."""


class Line:
    """An encoded event, shared by all who send it."""

    __slots__ = ("data", "encoded_at", "holders")

    def __init__(self, data: bytes):
        self.data = data
        self.encoded_at = time.monotonic()
        self.holders: Counter[str] = Counter()
        """Readers that are sending it, by user."""


class LineCache:
    """Lines by encoder, revision and type of event, those that were used last."""

    def __init__(self, limit: int = LINE_CACHE_BYTES):
        self._limit = limit
        self._lines: OrderedDict[Hashable, Line] = OrderedDict()
        self.bytes = 0

    def get(self, key: Hashable, encode: Callable[[], bytes]) -> Line:
        line = self._lines.pop(key, None)
        if line is not None and time.monotonic() - line.encoded_at <= LINE_LIFETIME:
            self._lines[key] = line
            return line
        if line is not None:
            self.bytes -= len(line.data)
        line = self._lines[key] = Line(encode())
        self.bytes += len(line.data)
        while self.bytes > self._limit:
            self.bytes -= len(self._lines.popitem(last=False)[1].data)
        return line


class Reader:
    """A client that is being sent versions: what it holds, and how to cut it off."""

    def __init__(self, user: str):
        self.user = user
        """Whose share it takes: the name of a user, or what service accounts of a namespace have in common."""
        self.ended = False
        self.disconnect: Callable[[], None] = lambda: None
        """Ends the connection of a client that does not keep up."""
        self.held_bytes = 0
        self.advanced = 0
        """When it last took something: a number that is larger the later that was."""
        self.line: Line | None = None
        """The encoded line that is being sent."""

    @property
    def oldest_revision(self) -> int | None:
        """Of the changes that it has yet to be sent; None if there are none."""
        return None

    def discard(self) -> None:
        """Forget what was still to be sent."""


class WatchBuffers:
    """The readers, and what they hold."""

    def __init__(self, limit: int = WATCH_BYTES):
        self._limit = limit
        self._user_limit = limit * USER_WATCH_BYTES // WATCH_BYTES
        self._readers: dict[Reader, None] = {}
        self.bytes = 0
        self.bytes_of_users: Counter[str] = Counter()
        self._clock = count()
        self.lines = LineCache(min(limit, LINE_CACHE_BYTES))

    def add(self, reader: Reader) -> None:
        self._readers[reader] = None

    def remove(self, reader: Reader) -> None:
        """It has been sent everything, or has left."""
        self.discard(reader)
        self._readers.pop(reader, None)
        if not self.bytes_of_users[reader.user]:
            del self.bytes_of_users[reader.user]

    def queue(self, reader: Reader, events: int) -> None:
        """So many events more are in its queue, or less."""
        size = events * REFERENCE_BYTES
        if not reader.held_bytes:
            self.advance(reader)
        reader.held_bytes += size
        self.bytes += size
        self.bytes_of_users[reader.user] += size
        if size > 0:
            self._enforce(reader.user)

    def hold(self, reader: Reader, line: Line) -> None:
        """A reader begins to send a line."""
        size, user = len(line.data), reader.user
        self.advance(reader)
        reader.line = line
        reader.held_bytes += size
        if not line.holders:
            self.bytes += size
        if user not in line.holders:
            self.bytes_of_users[user] += size
        line.holders[user] += 1
        self._enforce(user)

    def release(self, reader: Reader) -> None:
        """It has sent the line."""
        line, reader.line = reader.line, None
        if line is None:
            return
        size, user = len(line.data), reader.user
        reader.held_bytes -= size
        line.holders[user] -= 1
        if not line.holders[user]:
            del line.holders[user]
            self.bytes_of_users[user] -= size
        if not line.holders:
            self.bytes -= size

    def advance(self, reader: Reader) -> None:
        """It takes something, or begins to have something to take."""
        reader.advanced = next(self._clock)

    def _enforce(self, user: str) -> None:
        while self.bytes_of_users[user] > self._user_limit:
            slowest = min((reader for reader in self._holding() if reader.user == user), key=_advanced)
            self._cut_off(slowest, f"more than {self._user_limit} bytes wait for the readers of this user")
        while self.bytes > self._limit:
            slowest = min(self._holding(), key=_advanced)
            self._cut_off(slowest, f"more than {self._limit} bytes wait for all readers")

    def _holding(self) -> Iterator[Reader]:
        return (reader for reader in self._readers if reader.held_bytes)

    def compact(self, revision: int) -> None:
        """History has dropped the changes up to a revision: who has yet to be sent any is cut off."""
        for reader in self._readers:
            oldest = reader.oldest_revision
            if oldest is not None and oldest <= revision:
                self._cut_off(reader, "what it has yet to read has left history")

    def _cut_off(self, reader: Reader, reason: str) -> None:
        log.info("cut off a slow reader of user %.100s, who may list again: %s", reader.user, reason)
        self.discard(reader)
        reader.ended = True
        reader.disconnect()

    def discard(self, reader: Reader) -> None:
        """Nothing more will be sent to it."""
        reader.discard()
        self.release(reader)
        self.queue(reader, -reader.held_bytes // REFERENCE_BYTES)


def _advanced(reader: Reader) -> int:
    return reader.advanced
