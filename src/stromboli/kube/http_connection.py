"""Short exchanges with one server, on connections that are kept: what a scheduler does thousands of times a minute.

A full HTTP client costs two to three times as much processor time for them, which the API server beside us could use.
Streams, and servers behind a proxy, are left to one.
"""

from __future__ import annotations

import asyncio
import re
import ssl
import time
from collections import deque
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import cast
from urllib.parse import urlsplit

from stromboli.kube.http_response import Answer, BadAnswer, Overlong, Reading
from stromboli.kube.rate_limits import Clock
from stromboli.kube.request import RequestWithdrawn

CONNECT = 10.0
CONNECTIONS = 256
KEPT = 15.0
"""Seconds that a connection may lie idle; what lies between may forget it without a word."""
_SPEAKABLE = re.compile(r"[\x21-\x7e]+")
_VALUE = re.compile(r"[\x20-\x7e\x80-\xff]*")


class Connection(asyncio.Protocol):
    """One connection, one exchange at a time."""

    def __init__(self) -> None:
        self.usable = False
        self.idle_since = 0.0
        self._transport: asyncio.Transport
        self._reading: Reading | None = None
        self._answer: asyncio.Future[Answer] | None = None

    async def exchange(self, request: bytes, largest: int) -> Answer:
        """`OSError` or `BadAnswer` if it breaks off; whoever is cancelled breaks it off."""
        self._reading = Reading(largest)
        answer: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._answer = answer
        self._transport.write(request)
        try:
            return await answer
        except BaseException:
            self.abort()
            raise
        finally:
            self._reading = self._answer = None

    def abort(self) -> None:
        self.usable = False
        self._transport.abort()

    # -- called by the loop

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self.usable = True

    def data_received(self, data: bytes) -> None:
        if self._reading is None or self._answer is None or self._answer.done():
            self.abort()  # nobody asked for this
            return
        try:
            answer = self._reading.feed(data)
        except (BadAnswer, Overlong) as error:
            self.usable = False
            self._answer.set_exception(error)
            return
        if answer is not None:
            self.usable = not answer.last
            self._answer.set_result(answer)

    def connection_lost(self, error: Exception | None) -> None:
        self.usable = False
        if self._answer is None or self._answer.done() or self._reading is None:
            return
        try:
            if error is not None:
                raise error
            self._answer.set_result(self._reading.end())
        except Exception as broken:
            self._answer.set_exception(broken)


class Wire:
    """Exchanges with one server, as many at once as there may be connections."""

    def __init__(
        self,
        server: str,
        server_name: str = "",
        headers: Iterable[tuple[str, str]] = (),
        clock: Clock = time.monotonic,
    ) -> None:
        """`server_name` is the one in its certificate where that differs; `headers` go with every request."""
        url = urlsplit(server)
        self._host, self._port = url.hostname or "", url.port or (443 if url.scheme == "https" else 80)
        self._secure = url.scheme == "https"
        self._server_name = server_name or self._host
        self._prefix = url.path.rstrip("/")
        self._headers = written((("Host", url.netloc.rpartition("@")[2]), *headers))
        self._clock = clock
        self._room = asyncio.Semaphore(CONNECTIONS)
        self._idle: deque[Connection] = deque()
        """The one used last to the right."""
        self._context: ssl.SSLContext | None = None

    async def ask(
        self,
        method: str,
        path: str,
        body: bytes | None,
        headers: Iterable[tuple[str, str]],
        context: ssl.SSLContext,
        largest: int,
        still: Callable[[], bool] | None = None,
    ) -> Answer:
        """One exchange. `OSError` and `BadAnswer`: nobody knows what became of it. `Overlong`: more than `largest`."""
        if _SPEAKABLE.fullmatch(path) is None:
            raise BadAnswer(f"{path!r} cannot be asked for")
        head = f"{method} {self._prefix}{path} HTTP/1.1\r\n{self._headers}{written(tuple(headers))}"
        if body is not None:
            head += f"Content-Length: {len(body)}\r\n"
        request = head.encode("latin-1") + b"\r\n" + (body or b"")
        async with self._room:
            connection = await self._connection(context)
            if still is not None and not still():
                self._keep(connection)
                raise RequestWithdrawn
            answer = await connection.exchange(request, largest)
            if not connection.usable:
                connection.abort()
            elif context is self._context:
                self._keep(connection)
            return answer

    def _keep(self, connection: Connection) -> None:
        connection.idle_since = self._clock()
        self._idle.append(connection)

    async def _connection(self, context: ssl.SSLContext) -> Connection:
        """One that is free, or a new one. Those that showed another certificate are not used again."""
        if context is not self._context:
            self.close()
            self._context = context
        while self._idle and self._idle[0].idle_since < self._clock() - KEPT:
            self._idle.popleft().abort()
        while self._idle:
            connection = self._idle.pop()
            if connection.usable:
                return connection
        async with asyncio.timeout(CONNECT):
            _, made = await asyncio.get_running_loop().create_connection(
                Connection,
                self._host,
                self._port,
                ssl=context if self._secure else None,
                server_hostname=self._server_name if self._secure else None,
            )
        return made

    def close(self) -> None:
        """Let go of all connections that nobody uses."""
        while self._idle:
            self._idle.pop().abort()


@lru_cache(maxsize=16)
def written(headers: tuple[tuple[str, str], ...]) -> str:
    """Headers as lines; a value must not be more than one. They are mostly the same as the last time."""
    for name, value in headers:
        if _SPEAKABLE.fullmatch(name) is None or _VALUE.fullmatch(value) is None:
            raise BadAnswer(f"a header {name!r} that cannot be sent")
    return "".join([f"{name}: {value}\r\n" for name, value in headers])
