"""A pool of HTTP/1.1 connections for short requests, of which a scheduler sends thousands a minute, and for watches.

aiohttp's client takes two to three times as much CPU time for them, and a fifth of a second to import. Requests through
a proxy are left to it.
"""

from __future__ import annotations

import asyncio
import re
import ssl
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from functools import lru_cache
from typing import NamedTuple, TypeVar, cast
from urllib.parse import urlsplit

from stromboli.kube.credentials import Header
from stromboli.kube.request import Clock, Request, RequestWithdrawn

CONNECT_TIMEOUT = 10.0
MAX_CONNECTIONS = 256
IDLE_TIMEOUT = 15.0
"""Seconds that an idle connection is kept: a firewall in between may drop it silently."""
_VISIBLE_ASCII = re.compile(r"[\x21-\x7e]+")
_HEADER_VALUE = re.compile(r"[\x20-\x7e\x80-\xff]*")
AnyConnection = TypeVar("AnyConnection", bound="OpenedConnection")


class OpenedConnection(asyncio.Protocol):
    """A connection that is aborted if opening it is cancelled."""

    _transport: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def abort_opening(self) -> None:
        """Close at once; before the connection is made, asyncio does so."""
        if hasattr(self, "_transport"):
            self._transport.abort()


class Connection(OpenedConnection):
    """One connection, with one request in flight at a time."""

    def __init__(self) -> None:
        self.usable = False
        self.idle_since = 0.0
        self._reader: ResponseReader | None = None
        self._response: asyncio.Future[HttpResponse] | None = None

    async def exchange(self, request: bytes, max_bytes: int) -> HttpResponse:
        """Send and await the response; `OSError` or `BadResponse` if the connection breaks. Cancelling closes it."""
        self._reader = ResponseReader(max_bytes)
        response: asyncio.Future[HttpResponse] = asyncio.get_running_loop().create_future()
        self._response = response
        self._transport.write(request)
        try:
            return await response
        except BaseException:
            self.abort()
            raise
        finally:
            self._reader = self._response = None

    def abort(self) -> None:
        self.usable = False
        self._transport.abort()

    # -- asyncio.Protocol

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self.usable = True

    def data_received(self, data: bytes) -> None:
        if self._reader is None or self._response is None or self._response.done():
            self.abort()  # unsolicited
            return
        try:
            response = self._reader.feed(data)
        except (BadResponse, ResponseTooLarge) as error:
            self.usable = False
            self._response.set_exception(error)
            return
        if response is not None:
            self.usable = not response.closes
            self._response.set_result(response)

    def connection_lost(self, error: Exception | None) -> None:
        self.usable = False
        if self._response is None or self._response.done() or self._reader is None:
            return
        try:
            if error is not None:
                raise error
            self._response.set_result(self._reader.end())
        except Exception as broken:
            self._response.set_exception(broken)


class ConnectionPool:
    """Connections to one server: at most `MAX_CONNECTIONS` for requests, and as many for streams."""

    def __init__(
        self,
        server: str,
        server_name: str = "",
        headers: Iterable[Header] = (),
        clock: Clock = time.monotonic,
    ) -> None:
        """`server_name`: the one in its certificate, if it differs from the host. `headers` go with every request."""
        url = urlsplit(server)
        self._host, self._port = url.hostname or "", url.port or (443 if url.scheme == "https" else 80)
        self._secure = url.scheme == "https"
        self._server_name = server_name or self._host
        self._prefix = url.path.rstrip("/")
        self._headers = header_lines((("Host", url.netloc.rpartition("@")[2]), *headers))
        self._clock = clock
        self._slots = asyncio.Semaphore(MAX_CONNECTIONS)
        self._stream_slots = asyncio.Semaphore(MAX_CONNECTIONS)
        self._idle: deque[Connection] = deque()
        """Most recently used last."""
        self._context: ssl.SSLContext | None = None

    async def send(
        self, request: Request, headers: Iterable[Header], context: ssl.SSLContext, max_bytes: int
    ) -> HttpResponse:
        """Send one request. After `OSError` or `BadResponse` its outcome is unknown."""
        data = self._bytes_of(request, headers)
        async with self._slots:
            connection = await self._connection(context)
            try:
                if not request.still_wanted():
                    raise RequestWithdrawn
                return await connection.exchange(data, max_bytes)
            finally:
                self._release(connection, context)

    @asynccontextmanager
    async def stream(
        self,
        request: Request,
        headers: Iterable[Header],
        context: ssl.SSLContext,
        max_bytes: int,
        idle_timeout: float,
    ) -> AsyncIterator[HttpResponse | AsyncIterator[bytes]]:
        """A response in pieces as they come, or the whole of a refusal. `TimeoutError` after a silence."""
        data = self._bytes_of(request, headers)
        async with self._stream_slots:
            stream = await self._open(lambda: ResponseStream(max_bytes), context)
            try:
                refusal = await stream.begin(data, idle_timeout)
                yield stream.pieces(idle_timeout) if refusal is None else refusal
            finally:
                stream.abort()

    def _bytes_of(self, request: Request, headers: Iterable[Header]) -> bytes:
        method, path, body = request.method, request.path, request.body
        if _VISIBLE_ASCII.fullmatch(path) is None:
            raise BadResponse(f"{path!r} cannot be asked for")
        head = f"{method} {self._prefix}{path} HTTP/1.1\r\n{self._headers}{header_lines(tuple(headers))}"
        if body is not None:
            head += f"Content-Length: {len(body)}\r\n"
        return head.encode("latin-1") + b"\r\n" + (body or b"")

    def _release(self, connection: Connection, context: ssl.SSLContext) -> None:
        """Keep a connection for others, unless it broke or our certificate has changed meanwhile."""
        if not connection.usable or context is not self._context:
            connection.abort()
            return
        connection.idle_since = self._clock()
        self._idle.append(connection)

    async def _connection(self, context: ssl.SSLContext) -> Connection:
        """An idle connection or a new one. Those of an earlier TLS context, so another certificate, are closed."""
        if context is not self._context:
            self._close_idle()
            self._context = context
        while self._idle and self._idle[0].idle_since < self._clock() - IDLE_TIMEOUT:
            self._idle.popleft().abort()
        while self._idle:
            connection = self._idle.pop()
            if connection.usable:
                return connection
        return await self._open(Connection, context)

    async def _open(self, make: Callable[[], AnyConnection], context: ssl.SSLContext) -> AnyConnection:
        opened: list[AnyConnection] = []

        def protocol() -> AnyConnection:
            opened.append(make())
            return opened[-1]

        try:
            async with asyncio.timeout(CONNECT_TIMEOUT):
                _, connection = await asyncio.get_running_loop().create_connection(
                    protocol,
                    self._host,
                    self._port,
                    ssl=context if self._secure else None,
                    server_hostname=self._server_name if self._secure else None,
                )
        except BaseException:
            for unused in opened:  # asyncio closes it gracefully, which waits for the server
                unused.abort_opening()
            raise
        return connection

    async def close(self) -> None:
        """Close all idle connections."""
        self._close_idle()
        await asyncio.sleep(0)  # connections that were aborted close in the loop's next turn

    def _close_idle(self) -> None:
        while self._idle:
            self._idle.pop().abort()


@lru_cache(maxsize=16)
def header_lines(headers: tuple[Header, ...]) -> str:
    """Headers as lines, each checked to be one line. Cached, as they are mostly the same."""
    for name, value in headers:
        if _VISIBLE_ASCII.fullmatch(name) is None or _HEADER_VALUE.fullmatch(value) is None:
            raise BadResponse(f"a header {name!r} that cannot be sent")
    return "".join([f"{name}: {value}\r\n" for name, value in headers])


# -- one response that is read while it comes, such as that of a watch, over a connection of its own


MAX_UNREAD_BYTES = 1024 * 1024
"""Received and not taken yet; beyond that the connection is not read."""


class ResponseStream(OpenedConnection):
    """Used for one request; its opener aborts it."""

    def __init__(self, max_bytes: int) -> None:
        """`max_bytes` bounds a chunk, and the body of a refusal."""
        self._max_bytes = max_bytes
        self._reader = ResponseReader(max_bytes)
        self._unread = bytearray()
        self._refusal: HttpResponse | None = None
        self._ended = False
        self._error: Exception | None = None
        self._news = asyncio.Event()

    async def begin(self, request: bytes, idle_timeout: float) -> HttpResponse | None:
        """Send the request; the response if it is a refusal. `TimeoutError` after so many seconds without data."""
        self._transport.write(request)
        while self._refusal is None and not self._reader.succeeds:
            await self._wait(idle_timeout)
        return self._refusal

    async def pieces(self, idle_timeout: float) -> AsyncIterator[bytes]:
        """The body as it comes, to its end; `OSError` or `BadResponse` if the connection breaks."""
        while True:
            if self._unread:
                piece = bytes(self._unread)
                self._unread.clear()
                self._transport.resume_reading()
                yield piece
            elif self._ended:
                return
            else:
                await self._wait(idle_timeout)

    async def _wait(self, idle_timeout: float) -> None:
        if self._error is not None:
            raise self._error
        self._news.clear()
        async with asyncio.timeout(idle_timeout):
            await self._news.wait()

    def abort(self) -> None:
        """Close at once: a graceful close would wait for a server that may be gone."""
        self._transport.abort()

    # -- asyncio.Protocol

    def data_received(self, data: bytes) -> None:
        if self._ended or self._error is not None:
            self.abort()  # unsolicited
            return
        self._news.set()
        try:
            response = self._reader.feed(data)
        except BadResponse as error:
            self._fail(error)
            return
        except ResponseTooLarge:
            self._fail(BadResponse(f"a chunk of more than {self._max_bytes} bytes"))
            return
        if response is not None:
            self._finish(response)
        elif self._reader.succeeds:
            self._unread += self._reader.take()
            if len(self._unread) > MAX_UNREAD_BYTES:
                self._transport.pause_reading()

    def connection_lost(self, error: Exception | None) -> None:
        self._news.set()
        if self._ended or self._refusal is not None:
            return
        try:
            if error is not None:
                raise error
            self._finish(self._reader.end())
        except Exception as broken:
            self._fail(broken)

    def _finish(self, response: HttpResponse) -> None:
        if response.status >= 300:
            self._refusal = response
        self._unread += response.body
        self._ended = True

    def _fail(self, error: Exception) -> None:
        if self._error is None:
            self._error = error


# -- the parser of responses, limited to what an API server sends


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
