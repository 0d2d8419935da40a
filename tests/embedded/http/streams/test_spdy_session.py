"""Streams of a SPDY connection: answered, bounded in number and size, and gone at the end."""

import asyncio

import pytest

from stromboli.embedded.http.streams.spdy_frames import (
    Data,
    Ping,
    Reset,
    SpdyReader,
    SpdyWriter,
    StreamReset,
    control_frame,
    data_frame,
    ping_frame,
    reset_frame,
)
from stromboli.embedded.http.streams.spdy_headers import SpdyError
from stromboli.embedded.http.streams.spdy_session import MOST_SPDY_STREAMS, SESSION_BUFFER, SpdySession


class Client:
    """The other side of a session."""

    busy = False

    def __init__(self):
        self.incoming = asyncio.Queue()
        self.sent = b""
        self.taken = 0
        self.streams = []
        self.session = SpdySession(self, self.opened)
        self._writer = SpdyWriter()
        self._task = asyncio.create_task(self.session.run())

    async def opened(self, stream):
        self.streams.append(stream)

    async def send(self, data):
        self.sent += data

    async def receive(self):
        data = await self.incoming.get()
        self.taken += len(data)
        return data

    def say(self, *frames):
        self.incoming.put_nowait(b"".join(frames))

    def open(self, number, **headers):
        return self._writer.open(number, headers)

    async def settle(self):
        for _ in range(20):
            await asyncio.sleep(0)

    async def end(self):
        self.incoming.put_nowait(b"")
        await asyncio.wait_for(self._task, 10)

    @property
    def frames(self):
        return list(SpdyReader().feed(self.sent))


def scenario(test):
    def run():
        async def within():
            await test(Client())

        asyncio.run(asyncio.wait_for(within(), 30))

    run.__name__ = test.__name__
    return run


@scenario
async def test_a_stream_carries_data_both_ways(client):
    client.say(client.open(1, streamtype="data", port="80"), data_frame(1, b"question", fin=True))
    await client.settle()
    (stream,) = client.streams
    assert stream.headers == {"streamtype": "data", "port": "80"}
    assert (await stream.read(), await stream.read()) == (b"question", b"")
    await stream.write(b"a" * 50_000)
    await stream.end()
    read = [frame for frame in client.frames if isinstance(frame, Data)]
    assert b"".join(frame.data for frame in read) == b"a" * 50_000
    assert [frame.fin for frame in read] == [False, False, True]
    assert client.session._streams == {}
    await client.end()


@scenario
async def test_pings_are_answered(client):
    client.say(ping_frame(7), ping_frame(2))
    await client.settle()
    assert client.frames == [Ping(7)]
    await client.end()


@scenario
async def test_thousands_of_streams_are_refused(client):
    count = MOST_SPDY_STREAMS + 2000
    client.say(*(client.open(2 * number + 1, streamtype="data") for number in range(count)))
    for _ in range(count):
        await asyncio.sleep(0)
    assert len(client.streams) == len(client.session._streams) == MOST_SPDY_STREAMS
    resets = [frame for frame in client.frames if isinstance(frame, StreamReset)]
    assert len(resets) == 2000
    await client.end()
    assert client.session._streams == {}


@scenario
async def test_numbers_of_streams_are_odd_and_grow(client):
    client.say(client.open(5), client.open(3), client.open(5), client.open(8))
    await client.settle()
    assert [stream.number for stream in client.streams] == [5]
    assert [frame for frame in client.frames if isinstance(frame, StreamReset)] == [
        StreamReset(3),
        StreamReset(5),
        StreamReset(8),
    ]
    await client.end()


@pytest.mark.parametrize("size", [1, 10_000])
def test_what_nobody_takes_stops_the_connection(size):
    @scenario
    async def test(client):
        client.say(client.open(1))
        piece = data_frame(1, b"x" * size)
        for _ in range(3 * SESSION_BUFFER // max(size, 128)):
            client.say(piece)
        for _ in range(100_000):
            await asyncio.sleep(0)
            if client.session.unread > SESSION_BUFFER:
                break
        await client.settle()
        assert SESSION_BUFFER < client.session.unread < SESSION_BUFFER + 20_000
        assert client.taken < SESSION_BUFFER + 20_000
        before = client.taken
        (stream,) = client.streams
        for _ in range(SESSION_BUFFER // max(size, 128) // 2):
            await stream.read()
        await client.settle()
        assert client.taken > before
        await stream.reset()
        assert client.session.unread == 0
        client._task.cancel()

    test()


@scenario
async def test_who_waits_for_a_stream_hears_that_it_was_reset(client):
    client.say(client.open(1), client.open(3))
    await client.settle()
    waiting = [asyncio.create_task(stream.read()) for stream in client.streams]
    await client.settle()
    client.say(reset_frame(1, Reset.CANCEL))
    with pytest.raises(ConnectionResetError):
        await waiting[0]
    with pytest.raises(ConnectionResetError):
        await client.streams[0].write(b"more")
    await client.end()
    with pytest.raises(ConnectionResetError):
        await waiting[1]


@scenario
async def test_data_of_nobody_is_dropped(client):
    client.say(data_frame(9, b"who"), reset_frame(11, Reset.CANCEL), client.open(1))
    await client.settle()
    assert client.session.unread == 0
    assert len(client.streams) == 1
    await client.end()


@scenario
async def test_who_does_not_speak_spdy_is_cut_off(client):
    client.say(client.open(1), control_frame(1, b"GET / HTTP/1.1"))
    with pytest.raises(SpdyError):
        await client._task
    with pytest.raises(ConnectionResetError):
        await client.streams[0].read()
