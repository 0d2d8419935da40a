"""An incremental parser of HTTP/1.1 responses, limited to what an API server sends."""

from __future__ import annotations

import re
from typing import NamedTuple

MAX_HEAD_BYTES = 64 * 1024
_STATUS = re.compile(rb"HTTP/1\.([01]) (\d{3})(?: |\r|$)")
_LENGTH = re.compile(rb"\r\ncontent-length:[ \t]*(\d{1,15})[ \t]*(?:\r|$)", re.IGNORECASE)
_CHUNKED = re.compile(rb"\r\ntransfer-encoding:[^\r\n]*\bchunked\b", re.IGNORECASE)
_CLOSE = re.compile(rb"\r\nconnection:[^\r\n]*\bclose\b", re.IGNORECASE)
_RETRY_AFTER = re.compile(rb"\r\nretry-after:[ \t]*(\d{1,8})[ \t]*(?:\r|$)", re.IGNORECASE)
_CHUNK_SIZE = re.compile(rb"([0-9a-fA-F]{1,15})[ \t]*(?:;[^\r\n]*)?")


class BadResponse(Exception):
    """These bytes are no HTTP response."""


class ResponseTooLarge(Exception):
    """The body is larger than allowed."""


class HttpResponse(NamedTuple):
    """The parts of a response that we need."""

    status: int
    body: bytes
    retry_after: float | None
    """Seconds, if the server sent the header."""
    closes: bool
    """Whether the connection cannot be used again."""


class ResponseReader:
    """Parses one response. After `BadResponse` or `ResponseTooLarge` the connection must be closed."""

    def __init__(self, max_bytes: int) -> None:
        """`max_bytes` bounds the body, in bytes."""
        self._largest = max_bytes
        self._received = bytearray()
        self._head = b""
        self._status = 0
        self._length: int | None = None
        """Content-Length, if the server sent it."""
        self._chunked = False
        self._chunks = bytearray()

    def feed(self, data: bytes) -> HttpResponse | None:
        """The response, once it is complete."""
        self._received += data
        while not self._status:
            if not self._read_head():
                return None
        if self._status in (204, 304):  # these have no body
            return self._response(b"", self._received)
        if self._chunked:
            return self._read_chunks()
        if self._length is None and len(self._received) > self._largest:
            raise ResponseTooLarge
        if self._length is None or len(self._received) < self._length:
            return None
        return self._response(self._received[: self._length], self._received[self._length :])

    @property
    def succeeds(self) -> bool:
        """Whether the head has come, with a status of success."""
        return 0 < self._status < 300

    def take(self) -> bytes:
        """What came of the body since the last call, for a response without end; nothing if its length is announced."""
        if self._length is not None:
            return b""
        part = self._chunks if self._chunked else self._received
        taken = bytes(part)
        part.clear()
        return taken

    def end(self) -> HttpResponse:
        """The connection was closed, which ends a response without Content-Length."""
        if not self._status or self._chunked or self._length is not None:
            raise BadResponse("the connection broke off")
        return self._response(self._received, b"", closes=True)

    def _response(
        self, body: bytes | bytearray, rest: bytes | bytearray, closes: bool = False
    ) -> HttpResponse:
        retry_after = _RETRY_AFTER.search(self._head) if self._status >= 300 else None
        return HttpResponse(
            self._status,
            bytes(body),
            float(retry_after[1]) if retry_after else None,
            closes
            or bool(rest)
            or self._head.startswith(b"HTTP/1.0")
            or _CLOSE.search(self._head) is not None,
        )

    def _read_head(self) -> bool:
        """Whether the head is complete; informational responses (1xx) are skipped."""
        end = self._received.find(b"\r\n\r\n")
        if end < 0 or end > MAX_HEAD_BYTES:
            if len(self._received) > MAX_HEAD_BYTES:
                raise BadResponse(f"a head of more than {MAX_HEAD_BYTES} bytes")
            return False
        head = bytes(self._received[:end])
        del self._received[: end + 4]
        status = _STATUS.match(head)
        if status is None:
            raise BadResponse(f"no HTTP: {head[:40]!r}")
        if status[2][:1] == b"1" and status[2] != b"101":
            return True
        self._head, self._status = head, int(status[2])
        self._chunked = _CHUNKED.search(head) is not None
        length = None if self._chunked else _LENGTH.search(head)
        if length is not None:
            self._length = int(length[1])
            if self._length > self._largest:
                raise ResponseTooLarge
        return True

    def _read_chunks(self) -> HttpResponse | None:
        received, at = self._received, 0
        while True:
            line = received.find(b"\r\n", at)
            size = _CHUNK_SIZE.fullmatch(received, at, line) if line >= 0 else None
            if size is None:
                if line >= 0 or len(received) - at > MAX_HEAD_BYTES:
                    raise BadResponse("a chunk without a size")
                break
            begin, count = line + 2, int(size[1], 16)
            if len(self._chunks) + count > self._largest:
                raise ResponseTooLarge
            if count == 0:
                end = self._trailer(line)
                if end is None:
                    break
                return self._response(self._chunks, received[end:])
            if len(received) < begin + count + 2:
                break
            self._chunks += memoryview(received)[begin : begin + count]
            at = begin + count + 2
        del received[:at]
        return None

    def _trailer(self, line: int) -> int | None:
        """Where the trailer after the last chunk ends: headers, which we ignore, and an empty line."""
        end = self._received.find(b"\r\n\r\n", line)
        if end < 0 and len(self._received) - line > MAX_HEAD_BYTES:
            raise BadResponse("a trailer without end")
        return None if end < 0 else end + 4
