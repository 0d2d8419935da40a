"""Forwards connections of a client to ports of a pod: for each, a stream of data and a stream for an error."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Protocol

from stromboli.embedded.http.streams.byte_connections import ByteConnection
from stromboli.embedded.http.streams.remote_command import CLIENT_CHECK, STREAM_IDLE_TIME
from stromboli.embedded.http.streams.spdy_headers import SpdyError
from stromboli.embedded.http.streams.spdy_session import MOST_SPDY_STREAMS, SpdySession, SpdyStream
from stromboli.embedded.nodes.pod_streams import Socket, StreamRefused

PAIR_TIMEOUT = 30.0
"""Seconds for the second stream of a connection to come."""
CHUNK = 32 * 1024
"""Bytes that are read from a port at once."""

OpenPort = Callable[[int], Awaitable[Socket]]


@dataclass(slots=True)
class _Pair:
    """The streams of a connection, by type."""

    streams: dict[str, SpdyStream] = field(default_factory=dict)
    timer: asyncio.TimerHandle | None = None

    def cancel(self) -> None:
        if self.timer is not None:
            self.timer.cancel()


class PortForward:
    """The forwarded connections of one client."""

    def __init__(self, connection: ByteConnection, open_port: OpenPort) -> None:
        self._session = SpdySession(connection, self._opened)
        self._open_port = open_port
        self._pairs: dict[str, _Pair] = {}
        """Streams whose partner has not come yet, by the number of the connection."""
        self._tasks: set[asyncio.Task[None]] = set()

    async def serve(self, left: Callable[[], bool]) -> str:
        """Until the client leaves; the text says what was wrong with it, if anything."""
        running = asyncio.create_task(self._session.run())
        watching = asyncio.create_task(watch_progress(self._session, left))
        try:
            await asyncio.wait({running, watching}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for pair in self._pairs.values():
                pair.cancel()
            tasks = [running, watching, *self._tasks]
            for task in tasks:
                task.cancel()
            results = await asyncio.gather(*tasks, return_exceptions=True)
        return str(results[0]) if isinstance(results[0], SpdyError) else ""

    async def _opened(self, stream: SpdyStream) -> None:
        """Streams of a connection come in any order."""
        kind, number = stream.headers.get("streamtype", ""), stream.headers.get("requestid", "")
        pair = self._pairs.get(number) or _Pair()
        if kind not in ("data", "error") or kind in pair.streams or self._is_full(pair):
            await stream.reset()
            return
        pair.streams[kind] = stream
        if len(pair.streams) < 2:
            self._pairs[number] = pair
            pair.timer = asyncio.get_running_loop().call_later(PAIR_TIMEOUT, self._expire, number)
            return
        self._pairs.pop(number).cancel()
        self._start(self._forward(pair.streams["data"], pair.streams["error"]))

    def _is_full(self, pair: _Pair) -> bool:
        """Whether there is no room for a further connection, as others that are over have yet to be closed."""
        return not pair.streams and len(self._pairs) + len(self._tasks) >= MOST_SPDY_STREAMS

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _expire(self, number: str) -> None:
        """Give up a connection whose second stream does not come."""
        self._start(_reset(*self._pairs.pop(number).streams.values()))

    async def _forward(self, data: SpdyStream, error: SpdyStream) -> None:
        try:
            reader, writer = await self._open_port(port_number(data.headers.get("port", "")))
        except StreamRefused as refusal:
            with suppress(ConnectionError):
                await error.write(str(refusal).encode())
                await error.end()
            await _reset(data, error)
            return
        try:
            await asyncio.gather(_to_pod(data, writer), _to_client(reader, data))
            await error.end()
        except OSError:  # the client or the pod broke off
            await _reset(data)
            with suppress(ConnectionError):
                await error.end()
        finally:
            writer.transport.abort()


class Progress(Protocol):
    moved: int
    """Bytes sent and received so far."""

    @property
    def blocked(self) -> bool:
        """Whether data of the client waits for a pod to read."""

    async def ping(self) -> None:
        """Send something that means nothing."""


async def watch_progress(progress: Progress, left: Callable[[], bool]) -> None:
    """Until the client has left, or nothing has moved for too long."""
    moved, since = -1, 0.0
    while not left():
        if progress.moved != moved:
            moved, since = progress.moved, time.monotonic()
        elif time.monotonic() - since > STREAM_IDLE_TIME:
            return
        await asyncio.sleep(CLIENT_CHECK)
        if progress.blocked:
            await progress.ping()


async def _reset(*streams: SpdyStream) -> None:
    with suppress(ConnectionError):  # the client left
        for stream in streams:
            await stream.reset()


def port_number(text: str) -> int:
    """`StreamRefused` if a client names no port."""
    if text.isascii() and text.isdecimal() and len(text) <= 5 and 0 < int(text) < 65536:
        return int(text)
    raise StreamRefused(f'port "{text[:20]}" is not a number between 1 and 65535')


async def _to_pod(stream: SpdyStream, writer: asyncio.StreamWriter) -> None:
    while piece := await stream.read():
        writer.write(piece)
        await writer.drain()
    if writer.can_write_eof():
        writer.write_eof()


async def _to_client(reader: asyncio.StreamReader, stream: SpdyStream) -> None:
    while piece := await reader.read(CHUNK):
        await stream.write(piece)
    await stream.end()
