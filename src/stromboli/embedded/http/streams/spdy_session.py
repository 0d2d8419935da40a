"""A connection of SPDY/3.1 with the streams that a client opens.

Kubernetes' clients know no flow control of SPDY. So what a stream has received and nobody has taken is bounded for the
connection as a whole: while that is too much, nothing is read from the connection.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable

from stromboli.embedded.http.streams.byte_connections import PIECE, ByteConnection
from stromboli.embedded.http.streams.spdy_frames import (
    Data,
    Frame,
    GoAway,
    Ping,
    Reset,
    SpdyReader,
    SpdyWriter,
    StreamReset,
    Syn,
    data_frame,
    ping_frame,
    reset_frame,
)

MOST_SPDY_STREAMS = 256
"""Open on a connection at a time: two for every connection that is forwarded."""
SESSION_BUFFER = 1024 * 1024
"""Bytes of all streams of a connection that were received and not taken."""
FRAME = 32 * 1024
"""Bytes of a data frame that we send."""
FRAMES_AT_ONCE = 256
"""Frames after which others have their turn."""


class SpdyStream:
    """A stream that a client opened."""

    def __init__(self, session: SpdySession, number: int, headers: dict[str, str]) -> None:
        self.headers = headers
        self.number = number
        self._session = session
        self._pieces: deque[bytes] = deque()
        self._unread = 0
        self._received_all = False
        self._sent_all = False
        self._reset = False
        self._changed = asyncio.Event()

    async def read(self) -> bytes:
        """The next piece; empty at the end; `ConnectionError` if the client takes nothing back any more."""
        while not self._pieces and not self._received_all:
            self._changed.clear()
            await self._changed.wait()
        if self._reset:
            raise ConnectionResetError("the stream is closed")
        if not self._pieces:
            return b""
        piece = self._pieces.popleft()
        self._take(len(piece) + PIECE)
        return piece

    async def write(self, data: bytes) -> None:
        """Returns once there is room for more; `ConnectionError` if the client does not read any more."""
        for start in range(0, len(data), FRAME):
            if self._reset or self._sent_all:
                raise ConnectionResetError("the stream is closed")
            await self._session.send(data_frame(self.number, data[start : start + FRAME]))

    async def end(self) -> None:
        """Send nothing more."""
        if not self._sent_all and not self._reset:
            self._sent_all = True
            self._forget_if_over()
            await self._session.send(data_frame(self.number, b"", fin=True))

    async def reset(self) -> None:
        """Neither send nor take anything any more."""
        if not self._reset and not (self._sent_all and self._received_all):
            self.closed()
            await self._session.send(reset_frame(self.number, Reset.CANCEL))

    # -- called by the session

    def put(self, data: bytes, fin: bool) -> None:
        if self._received_all:
            return
        if data:
            self._pieces.append(data)
            self._unread += len(data) + PIECE
            self._session.unread += len(data) + PIECE
        self._received_all = fin
        self._changed.set()
        self._forget_if_over()

    def closed(self) -> None:
        """Neither side uses it any more."""
        self._reset = self._received_all = True
        self._pieces.clear()
        self._take(self._unread)
        self._changed.set()
        self._forget_if_over()

    def _take(self, size: int) -> None:
        self._unread -= size
        self._session.unread -= size
        self._session.room.set()

    def _forget_if_over(self) -> None:
        if self._reset or (self._sent_all and self._received_all):
            self._session.forget(self.number)


class SpdySession:
    """Serves a connection until its end."""

    def __init__(self, connection: ByteConnection, opened: Callable[[SpdyStream], Awaitable[None]]) -> None:
        """`opened` is called with each new stream."""
        self._connection = connection
        self._opened = opened
        self._reader = SpdyReader()
        self._writer = SpdyWriter()
        self._streams: dict[int, SpdyStream] = {}
        self._last = 0
        """Number of the last stream; numbers of a client are odd and grow."""
        self.unread = 0
        """Bytes of all streams that were received and not taken."""
        self.room = asyncio.Event()
        self.moved = 0
        """Bytes sent and received so far."""

    async def run(self) -> None:
        """Until the client leaves; `SpdyError` if it does not keep to the protocol."""
        count = 0
        try:
            while data := await self._connection.receive():
                self.moved += len(data)
                for frame in self._reader.feed(data):
                    await self._take(frame)
                    count += 1
                    if not count % FRAMES_AT_ONCE:
                        await asyncio.sleep(0)
                while self.blocked:
                    self.room.clear()
                    await self.room.wait()
        finally:
            for stream in list(self._streams.values()):
                stream.closed()

    async def send(self, frame: bytes) -> None:
        self.moved += len(frame)
        await self._connection.send(frame)

    @property
    def blocked(self) -> bool:
        """Whether the connection is not read from, as what came before was not taken."""
        return self.unread > SESSION_BUFFER

    async def ping(self) -> None:
        """Send something that means nothing; not while the client does not read either."""
        if not self._connection.busy:
            await self._connection.send(ping_frame(2))

    async def _take(self, frame: Frame) -> None:
        match frame:
            case Syn():
                await self._open(frame)
            case Data(number, data, fin):
                stream = self._streams.get(number)
                if stream is not None:  # else it was reset, and its client has yet to hear of it
                    stream.put(data, fin)
            case StreamReset(number) if (reset := self._streams.get(number)) is not None:
                reset.closed()
            case Ping(number) if number % 2:  # even numbers answer pings of ours
                await self.send(ping_frame(number))
            case GoAway() | _:
                return

    async def _open(self, syn: Syn) -> None:
        if syn.stream <= self._last or not syn.stream % 2:
            await self.send(reset_frame(syn.stream, Reset.PROTOCOL_ERROR))
            return
        self._last = syn.stream
        if len(self._streams) >= MOST_SPDY_STREAMS:
            await self.send(reset_frame(syn.stream, Reset.REFUSED_STREAM))
            return
        stream = self._streams[syn.stream] = SpdyStream(self, syn.stream, syn.headers)
        stream.put(b"", syn.fin)
        await self.send(self._writer.reply(syn.stream))
        await self._opened(stream)

    # -- called by streams

    def forget(self, number: int) -> None:
        self._streams.pop(number, None)
