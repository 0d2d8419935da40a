"""The channels of a command on the connection of its client."""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from typing import Protocol

from aiohttp import WSCloseCode, WSMsgType, web

from stromboli.embedded.http.streams.byte_connections import ByteConnection
from stromboli.embedded.http.streams.channel_frames import Channel, Frame, decode_frame, encode_frame
from stromboli.embedded.http.streams.spdy_headers import SpdyError
from stromboli.embedded.http.streams.spdy_session import SpdySession, SpdyStream

STREAMS_TIMEOUT = 30.0
"""Seconds for a client to open the streams of a command."""
FIRST_MESSAGE_DELAY = 0.05
"""Seconds from the handshake of a WebSocket to the first message.

kubectl 1.32, and others of its age, drop what comes before their streams are set up: output, and an exit code too.
"""
_STREAM_TYPES = {
    "stdin": Channel.STDIN,
    "stdout": Channel.STDOUT,
    "stderr": Channel.STDERR,
    "error": Channel.ERROR,
    "resize": Channel.RESIZE,
}


class CommandChannels(Protocol):
    active: float
    """When something was last sent or received, by the steady clock."""
    unread: bool
    """Whether data of the client waits for the process to read."""

    async def send(self, channel: Channel, data: bytes) -> None:
        """Returns once there is room for more; `ConnectionError` if the client left."""

    async def receive(self) -> Frame | None:
        """What the client sends next; None if it left."""

    async def ping(self) -> None:
        """Send something that means nothing."""

    async def finish(self, status: bytes) -> None:
        """Send how it ended, and close."""


class WebSocketChannels:
    """Each message is for a channel."""

    def __init__(self, socket: web.WebSocketResponse) -> None:
        self.socket = socket
        self._protocol = socket.ws_protocol or ""
        self._sending = asyncio.Lock()
        self.active = time.monotonic()
        self._ready = self.active + FIRST_MESSAGE_DELAY
        self.unread = False

    async def send(self, channel: Channel, data: bytes) -> None:
        async with self._sending:
            if (early := self._ready - time.monotonic()) > 0:
                await asyncio.sleep(early)
            await self.socket.send_bytes(encode_frame(channel, data))
        self.active = time.monotonic()

    async def receive(self) -> Frame | None:
        while True:
            message = await self.socket.receive()
            if message.type not in (WSMsgType.BINARY, WSMsgType.TEXT):
                return None
            self.active = time.monotonic()
            data = message.data.encode() if message.type is WSMsgType.TEXT else bytes(message.data)
            if (frame := decode_frame(data, self._protocol)) is not None:
                return frame

    async def ping(self) -> None:
        if not self._sending.locked():
            await self.socket.ping()

    async def finish(self, status: bytes) -> None:
        await self.send(Channel.ERROR, status)
        await self.socket.close(code=WSCloseCode.OK)


class SpdyChannels:
    """Each channel is a stream, which the client opens."""

    def __init__(self, connection: ByteConnection, wanted: set[Channel]) -> None:
        self._session = SpdySession(connection, self._open)
        self._missing = wanted
        self._complete = asyncio.Event()
        self._streams: dict[Channel, SpdyStream] = {}
        self._frames: asyncio.Queue[Frame | None] = asyncio.Queue(1)
        self._readers: set[asyncio.Task[None]] = set()
        self.active = time.monotonic()
        self.unread = False

    async def open(self) -> bool:
        """Wait until the client has opened all streams; False if it did not."""
        self._running = asyncio.create_task(self._run())
        try:
            async with asyncio.timeout(STREAMS_TIMEOUT):
                await self._complete.wait()
        except TimeoutError:
            return False
        return not self._missing

    async def close(self) -> None:
        for task in (self._running, *self._readers):
            task.cancel()
        await asyncio.gather(self._running, *self._readers, return_exceptions=True)

    async def _run(self) -> None:
        try:
            await self._session.run()
        except (SpdyError, ConnectionError):
            pass
        finally:
            self._complete.set()
        await self._frames.put(None)

    async def _open(self, stream: SpdyStream) -> None:
        channel = _STREAM_TYPES.get(stream.headers.get("streamtype", ""))
        if channel not in self._missing or channel is None:
            await stream.reset()
            return
        self._missing.discard(channel)
        self._streams[channel] = stream
        self._readers.add(asyncio.create_task(self._read(channel, stream)))
        if not self._missing:
            self._complete.set()

    async def _read(self, channel: Channel, stream: SpdyStream) -> None:
        with suppress(ConnectionError):
            while data := await stream.read():
                if channel in (Channel.STDIN, Channel.RESIZE):
                    await self._frames.put(Frame(channel, data))
            if channel is Channel.STDIN:
                await self._frames.put(Frame(channel, end=True))

    async def send(self, channel: Channel, data: bytes) -> None:
        await self._streams[channel].write(data)
        self.active = time.monotonic()

    async def receive(self) -> Frame | None:
        frame = await self._frames.get()
        self.active = time.monotonic()
        return frame

    async def ping(self) -> None:
        await self._session.ping()

    async def finish(self, status: bytes) -> None:
        await self.send(Channel.ERROR, status)
        for stream in self._streams.values():
            await stream.end()
