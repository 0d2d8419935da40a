"""Connections that carry SPDY: a WebSocket whose messages are pieces of it, or a connection that was upgraded to it."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Protocol

from aiohttp import WSMsgType, web

from stromboli.daemon.guarded_connection import Connection

UNREAD = 64 * 1024
"""Bytes that came and were not taken, from which on a connection is not read."""
PIECE = 128
"""Bytes that a piece counts in addition to its own, lest many small ones take much memory."""


class ByteConnection(Protocol):
    @property
    def busy(self) -> bool:
        """Whether something waits to be sent."""

    async def send(self, data: bytes) -> None:
        """Returns once there is room for more; `ConnectionError` if the other side left."""

    async def receive(self) -> bytes:
        """The next piece; empty at the end."""


class WebSocketConnection:
    """The bytes of all messages of a WebSocket."""

    def __init__(self, socket: web.WebSocketResponse) -> None:
        self._socket = socket
        self._sending = asyncio.Lock()

    @property
    def busy(self) -> bool:
        return self._sending.locked()

    async def send(self, data: bytes) -> None:
        async with self._sending:  # each waits for room by itself, and many together would take much
            await self._socket.send_bytes(data)

    async def receive(self) -> bytes:
        while True:
            message = await self._socket.receive()
            if message.type is not WSMsgType.BINARY:
                return b""
            if message.data:
                return bytes(message.data)


class UpgradedConnection:
    """A connection on which another protocol is spoken than HTTP."""

    def __init__(self, connection: Connection, transport: asyncio.Transport) -> None:
        self._transport = transport
        self._pieces: deque[bytes] = deque()
        self._unread = 0
        self._ended = False
        self._changed = asyncio.Event()
        self._room = asyncio.Event()
        self._room.set()
        self._sending = asyncio.Lock()
        connection.upgrade(self)

    @property
    def busy(self) -> bool:
        return self._sending.locked()

    async def send(self, data: bytes) -> None:
        async with self._sending:
            await self._room.wait()
            if self._ended or self._transport.is_closing():
                raise ConnectionResetError("the client left")
            self._transport.write(data)

    async def receive(self) -> bytes:
        while not self._pieces and not self._ended:
            self._changed.clear()
            await self._changed.wait()
        if not self._pieces:
            return b""
        piece = self._pieces.popleft()
        before, self._unread = self._unread, self._unread - len(piece) - PIECE
        if before > UNREAD >= self._unread and not self._transport.is_closing():
            self._transport.resume_reading()
        return piece

    # -- called by the connection

    def data_received(self, data: bytes) -> None:
        before, self._unread = self._unread, self._unread + len(data) + PIECE
        self._pieces.append(data)
        self._changed.set()
        if before <= UNREAD < self._unread:
            self._transport.pause_reading()

    def pause_writing(self) -> None:
        self._room.clear()

    def resume_writing(self) -> None:
        self._room.set()

    def end(self) -> None:
        """The other side sends nothing more."""
        self._ended = True
        self._changed.set()
        self._room.set()
