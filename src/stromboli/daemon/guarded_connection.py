"""A connection between its socket and aiohttp, closed when its client is too slow.

aiohttp by itself waits for ever for a header, for a body, and for a client that does not read.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import Callable
from enum import Enum
from typing import TYPE_CHECKING, Protocol, cast

from aiohttp import web
from aiohttp.abc import AbstractStreamWriter

from stromboli.daemon.request_log import request_log

if TYPE_CHECKING:
    from stromboli.daemon.connection_guard import ConnectionGuard


class Upgraded(Protocol):
    """Another protocol on a connection, after the answer to the request that asked for it."""

    def data_received(self, data: bytes) -> None: ...

    def pause_writing(self) -> None: ...

    def resume_writing(self) -> None: ...

    def end(self) -> None:
        """The client sends nothing more."""


END_OF_HEADER = b"\r\n\r\n"


class Phase(Enum):
    """What a connection is doing, in the order in which connections are given up when there are too many."""

    WAITING = "no request yet that was authenticated, and none under way"
    IDLE = "between two requests"
    UNPROVEN_REQUEST = "a request under way, of nobody knows whom"
    REQUEST = "a request under way"


class Header(Enum):
    """How much has come of the header of the next request."""

    AWAITED = "nothing"
    BEGUN = "a part, or it is the first one"
    COMPLETE = "everything, and aiohttp is about to read it"


class Connection(asyncio.Protocol):
    """One connection: hands everything on to aiohttp, and looks at the clock."""

    def __init__(self, guard: ConnectionGuard) -> None:
        self.phase = Phase.WAITING
        self.owner = ""
        """The user whose requests it carries, once that is known."""
        self.surplus = False
        """Whether its user has too many, so that it is closed after the answer to the request under way."""
        self._guard = guard
        self._loop = asyncio.get_running_loop()
        self._socket: asyncio.Transport
        """Below TLS, where what a client has not read yet is waiting."""
        self._transport: asyncio.Transport | None = None
        """What aiohttp reads from and writes to."""
        self._http: web.RequestHandler | None = None
        self._upgraded: Upgraded | None = None
        self._handshake: asyncio.Task[None] | None = None
        self._early = b""
        """What came in between the handshake and its end being noticed."""
        self._timer: asyncio.TimerHandle | None = None
        self._closed = False
        self.since = self._loop.time()
        """Since when this header or body has been coming, or there was no request."""
        self._received = 0
        """Bytes of the header or body since then."""
        self._header = Header.BEGUN
        self._tail = b""
        """The last bytes of the header so far, which may be a part of its end."""
        self._request: web.BaseRequest | None = None
        self._streams = False
        self._left: Callable[[], None] | None = None
        self._writer: AbstractStreamWriter | None = None
        """Of the last request; it counts what is written."""
        self._written_before = 0
        """Bytes written for requests before that."""
        self._progress: tuple[float, int] | None = None
        """When it was last looked at what the client had yet to read, and what it had read; None if that was all."""

    # -- what the server says about the request under way

    def begin(self, request: web.BaseRequest) -> None:
        """The header of a request is complete."""
        proven = self.phase in (Phase.IDLE, Phase.REQUEST)
        self._guard.move(self, Phase.REQUEST if proven else Phase.UNPROVEN_REQUEST)
        self.since, self._received = self._loop.time(), 0
        self._request, self._header = request, Header.COMPLETE
        self._written_before, self._writer = self._written, request.writer
        self._check_by(self.since + self._guard.limits.body_time)

    def end(self) -> None:
        """Its response is complete, or about to be written."""
        proven = self.phase is Phase.REQUEST
        self._guard.move(self, Phase.IDLE if proven else Phase.WAITING)
        self.since, self._received = self._loop.time(), 0
        self._header, self._tail = Header.AWAITED, b""
        self._request, self._streams, self._left = None, False, None
        self._check_by(self.since + min(self._guard.limits.idle_time, self._guard.limits.write_time))

    def prove(self, owner: str, most: int) -> bool:
        """Somebody known is there; False if they have `most` connections already, and none is idle."""
        self.surplus = not self._guard.own(self, owner, most)
        if self.phase is Phase.UNPROVEN_REQUEST and not self.surplus:
            self._guard.move(self, Phase.REQUEST)
        return not self.surplus

    def stream(self, left: Callable[[], None] | None) -> None:
        """The response to the request under way takes as long as its client likes; `left` is called if that leaves."""
        self._streams = True
        self._left = left

    def upgrade(self, upgraded: Upgraded) -> None:
        """From now on the client speaks another protocol."""
        self._upgraded = upgraded

    def finish(self) -> None:
        """That response comes to its end: what is left of it has to be read as fast as any other."""
        self._streams = False
        self._check_by(self._loop.time() + self._guard.limits.write_time)

    # -- time

    def _check_by(self, when: float) -> None:
        if self._closed:
            return
        if self._timer is not None:
            if self._timer.when() <= when:
                return
            self._timer.cancel()
        self._timer = self._loop.call_at(when, self._check)

    def _check(self) -> None:
        self._timer = None
        if self._streams:
            return
        now, limits = self._loop.time(), self._guard.limits
        unread = self._socket.get_write_buffer_size()
        if unread:
            if self._stalled(now, unread):
                self.close(f"less than {limits.slowest} bytes read in a second")
                return
            deadline = now + limits.write_time
        else:
            self._progress = None
            deadline, reason = self._deadline()
            if now >= deadline:
                self.close(reason)
                return
        self._check_by(min(deadline, now + limits.write_time))

    def _deadline(self) -> tuple[float, str]:
        """Until when the client has to send something, and what is wrong if it does not."""
        limits = self._guard.limits
        if self._header is Header.AWAITED:
            return self.since + limits.idle_time, ""
        if self._header is Header.BEGUN:
            return self.since + limits.header_time, f"no header within {limits.header_time:g} seconds"
        if self._request is not None and self._request.content.is_eof():
            return float("inf"), ""
        if self._transport is not None and not self._transport.is_reading():
            self.since = self._loop.time()  # it is the server that does not read
        time_left = limits.body_time + self._received / limits.slowest
        return (
            self.since + time_left,
            f"no body within {limits.body_time:g} seconds and a second for every {limits.slowest} bytes",
        )

    @property
    def _written(self) -> int:
        return self._written_before + (self._writer.output_size if self._writer is not None else 0)

    def _stalled(self, now: float, unread: int) -> bool:
        """Whether too little was read since the last look; one that comes too early is not counted."""
        limits, last = self._guard.limits, self._progress
        if last is not None and now - last[0] < limits.write_time:
            return False
        read = self._written - unread
        self._progress = (now, read)
        return last is not None and read - last[1] < limits.slowest * (now - last[0])

    # -- the end

    def close(self, reason: str, level: int = logging.INFO) -> None:
        """Hang up: politely, and without a word in the log, if the connection was just idle."""
        if reason:
            self._guard.closed(reason, level)
            self.abort()
        elif self._transport is not None:
            self._transport.close()

    def abort(self) -> None:
        self._forget()
        if self._handshake is not None:
            self._handshake.cancel()
        self._socket.abort()

    def _forget(self) -> None:
        self._closed = True
        self._guard.remove(self)
        if self._timer is not None:
            self._timer.cancel()

    # -- asyncio.Protocol

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._socket = cast(asyncio.Transport, transport)
        self._check_by(self.since + self._guard.limits.header_time)
        if self._guard.tls is None:
            self._start_http(self._socket)
        else:
            self._handshake = self._loop.create_task(self._start_tls(self._guard.tls))
        self._guard.add(self)

    async def _start_tls(self, context: ssl.SSLContext) -> None:
        try:
            transport = await self._loop.start_tls(
                self._socket,
                self,
                context,
                server_side=True,
                ssl_handshake_timeout=self._guard.limits.header_time,
            )
        except OSError:  # no TLS, or not in time
            transport = None
        self._handshake = None
        if transport is None or self._closed:
            self.abort()
        else:
            self._start_http(transport)

    def _start_http(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self._http = self._guard.server()
        self._http.logger = request_log
        self._http.connection_made(transport)
        if self._early:
            self._http.data_received(self._early)
            self._early = b""

    def data_received(self, data: bytes) -> None:
        if self._transport is not None and self._transport.is_closing():
            return
        self._received += len(data)
        if self._upgraded is not None:
            self._upgraded.data_received(data)
            return
        if self._header is not Header.COMPLETE and not self._take_header(data):
            return
        if self._http is None:
            self._early += data
        else:
            self._http.data_received(data)

    def _take_header(self, data: bytes) -> bool:
        """Note how much of a header has come; False if that is too much of somebody unknown."""
        limits = self._guard.limits
        if self._header is Header.AWAITED:
            self._header, self.since = Header.BEGUN, self._loop.time()
            self._check_by(self.since + limits.header_time)
        joined = self._tail + data
        self._tail = joined[-len(END_OF_HEADER) + 1 :]
        size, end = self._received, joined.find(END_OF_HEADER)
        if end >= 0:
            self._header = Header.COMPLETE
            size -= len(joined) - end - len(END_OF_HEADER)
        if size <= limits.header_bytes or self.phase is not Phase.WAITING:
            return True
        self._refuse(f"a header of more than {limits.header_bytes} bytes")
        return False

    def _refuse(self, reason: str) -> None:
        if self._transport is None:
            self.close(reason)
            return
        self._guard.closed(reason, logging.INFO)
        text = f"{reason}: send fewer or shorter fields\n"
        fields = f"Content-Length: {len(text)}\r\nConnection: close"
        head = f"HTTP/1.1 431 Request Header Fields Too Large\r\n{fields}\r\n\r\n"
        self._transport.write(f"{head}{text}".encode())
        self._transport.close()

    def eof_received(self) -> None:
        if self._upgraded is not None:
            self._upgraded.end()
        if self._http is not None:
            self._http.eof_received()

    def pause_writing(self) -> None:
        if self._upgraded is not None:
            self._upgraded.pause_writing()
        if self._http is not None:
            self._http.pause_writing()

    def resume_writing(self) -> None:
        if self._upgraded is not None:
            self._upgraded.resume_writing()
        if self._http is not None:
            self._http.resume_writing()

    def connection_lost(self, error: Exception | None) -> None:
        self._forget()
        if self._upgraded is not None:
            self._upgraded.end()
        if self._http is not None:
            self._http.connection_lost(error)
        if self._left is not None:
            self._left()
