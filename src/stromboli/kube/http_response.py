"""An HTTP/1.1 answer read from bytes as they come, in whatever pieces: just what an API server sends, within bounds."""

from __future__ import annotations

import re
from typing import NamedTuple

LARGEST_HEAD = 64 * 1024
_STATUS = re.compile(rb"HTTP/1\.([01]) (\d{3})(?: |\r|$)")
_LENGTH = re.compile(rb"\r\ncontent-length:[ \t]*(\d{1,15})[ \t]*(?:\r|$)", re.IGNORECASE)
_CHUNKED = re.compile(rb"\r\ntransfer-encoding:[^\r\n]*\bchunked\b", re.IGNORECASE)
_CLOSE = re.compile(rb"\r\nconnection:[^\r\n]*\bclose\b", re.IGNORECASE)
_LATER = re.compile(rb"\r\nretry-after:[ \t]*(\d{1,8})[ \t]*(?:\r|$)", re.IGNORECASE)
_SIZE = re.compile(rb"([0-9a-fA-F]{1,15})[ \t]*(?:;[^\r\n]*)?")
_BODILESS = (204, 304)


class BadAnswer(Exception):
    """This is no answer."""


class Overlong(Exception):
    """The body is larger than was allowed."""


class Answer(NamedTuple):
    """All that is asked of an answer."""

    status: int
    body: bytes
    retry_after: float | None
    """Seconds, if the server says when to come again."""
    last: bool
    """Whether nothing more may be asked on this connection."""


class Reading:
    """One answer on its way in. After `BadAnswer` or `Overlong` the connection is of no use."""

    def __init__(self, largest: int) -> None:
        """`largest` bounds the body, in bytes."""
        self._largest = largest
        self._received = bytearray()
        self._head = b""
        self._status = 0
        self._length: int | None = None
        """Bytes of the body, if that was said."""
        self._chunked = False
        self._chunks = bytearray()

    def feed(self, data: bytes) -> Answer | None:
        """The answer, once all of it is there."""
        self._received += data
        while not self._status:
            if not self._read_head():
                return None
        if self._status in _BODILESS:
            return self._answer(b"", self._received)
        if self._chunked:
            return self._read_chunks()
        if self._length is None and len(self._received) > self._largest:
            raise Overlong
        if self._length is None or len(self._received) < self._length:
            return None
        return self._answer(self._received[: self._length], self._received[self._length :])

    def end(self) -> Answer:
        """Nothing more will come; an answer of unsaid length is whole by that."""
        if not self._status or self._chunked or self._length is not None:
            raise BadAnswer("the connection broke off")
        return self._answer(self._received, b"", last=True)

    def _answer(self, body: bytes | bytearray, rest: bytes | bytearray, last: bool = False) -> Answer:
        later = _LATER.search(self._head) if self._status >= 300 else None
        return Answer(
            self._status,
            bytes(body),
            float(later[1]) if later else None,
            last or bool(rest) or self._head.startswith(b"HTTP/1.0") or _CLOSE.search(self._head) is not None,
        )

    def _read_head(self) -> bool:
        """Whether there was a whole one; one that only announces the real one (1xx) is skipped."""
        end = self._received.find(b"\r\n\r\n")
        if end < 0 or end > LARGEST_HEAD:
            if len(self._received) > LARGEST_HEAD:
                raise BadAnswer(f"a head of more than {LARGEST_HEAD} bytes")
            return False
        head = bytes(self._received[:end])
        del self._received[: end + 4]
        status = _STATUS.match(head)
        if status is None:
            raise BadAnswer(f"no HTTP: {head[:40]!r}")
        if status[2][:1] == b"1" and status[2] != b"101":
            return True
        self._head, self._status = head, int(status[2])
        self._chunked = _CHUNKED.search(head) is not None
        length = None if self._chunked else _LENGTH.search(head)
        if length is not None:
            self._length = int(length[1])
            if self._length > self._largest:
                raise Overlong
        return True

    def _read_chunks(self) -> Answer | None:
        received, at = self._received, 0
        while True:
            line = received.find(b"\r\n", at)
            size = _SIZE.fullmatch(received, at, line) if line >= 0 else None
            if size is None:
                if line >= 0 or len(received) - at > LARGEST_HEAD:
                    raise BadAnswer("a chunk without a size")
                break
            begin, count = line + 2, int(size[1], 16)
            if len(self._chunks) + count > self._largest:
                raise Overlong
            if count == 0:
                end = self._trailer(line)
                if end is None:
                    break
                return self._answer(self._chunks, received[end:])
            if len(received) < begin + count + 2:
                break
            self._chunks += memoryview(received)[begin : begin + count]
            at = begin + count + 2
        del received[:at]
        return None

    def _trailer(self, line: int) -> int | None:
        """Where what follows the last chunk ends: headers, of which we need none, and an empty line."""
        end = self._received.find(b"\r\n\r\n", line)
        if end < 0 and len(self._received) - line > LARGEST_HEAD:
            raise BadAnswer("a trailer without end")
        return None if end < 0 else end + 4
