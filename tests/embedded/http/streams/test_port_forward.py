"""Forwarded connections: pairs of streams, errors, ends of either side, and clients that misbehave."""

import asyncio
from contextlib import asynccontextmanager

import pytest

from stromboli.embedded.http.streams import port_forward
from stromboli.embedded.http.streams.port_forward import PortForward
from stromboli.embedded.http.streams.spdy_frames import (
    Data,
    Reset,
    SpdyReader,
    SpdyWriter,
    StreamReset,
    data_frame,
    reset_frame,
)
from stromboli.embedded.http.streams.spdy_session import MOST_SPDY_STREAMS
from stromboli.embedded.nodes.pod_streams import StreamRefused


class Client:
    """A client that forwards ports, without a network."""

    busy = False

    def __init__(self):
        self._writer = SpdyWriter()
        self._reader = SpdyReader()
        self._incoming = asyncio.Queue()
        self.frames = []

    async def send(self, data):
        self.frames += self._reader.feed(data)

    async def receive(self):
        return await self._incoming.get()

    def say(self, *frames):
        self._incoming.put_nowait(b"".join(frames))

    def open(self, stream, kind, request, port="80"):
        return self._writer.open(stream, {"streamtype": kind, "requestid": str(request), "port": port})

    def connect(self, request, port="80"):
        """The stream for errors is `4 * request + 1`, that for data the next."""
        self.say(
            self.open(4 * request + 1, "error", request, port),
            data_frame(4 * request + 1, b"", fin=True),
            self.open(4 * request + 3, "data", request, port),
        )

    def received(self, stream):
        return b"".join(
            frame.data for frame in self.frames if isinstance(frame, Data) and frame.stream == stream
        )

    def is_over(self, stream):
        return any(
            frame == StreamReset(stream) or (isinstance(frame, Data) and frame.stream == stream and frame.fin)
            for frame in self.frames
        )

    async def until(self, holds):
        async with asyncio.timeout(20):
            while not holds():
                await asyncio.sleep(0.01)


class Pod:
    """A server that answers in capital letters, at its end too."""

    def __init__(self):
        self.open = 0

    async def serve(self, reader, writer):
        self.open += 1
        while piece := await reader.read(100):
            writer.write(piece.upper())
        writer.write(b"END")
        writer.close()
        self.open -= 1


@asynccontextmanager
async def forwarding():
    client, pod = Client(), Pod()
    server = await asyncio.start_server(pod.serve, "127.0.0.1", 0)

    async def open_port(port):
        if port != 80:
            raise StreamRefused(f"nothing listens on {port}")
        return await asyncio.open_connection(*server.sockets[0].getsockname())

    forward = PortForward(client, open_port)
    serving = asyncio.create_task(forward.serve(lambda: False))
    try:
        yield client, pod, forward
        client.say(b"")
        await asyncio.wait_for(serving, 20)
        await client.until(lambda: not pod.open)
        assert not forward._tasks
    finally:
        serving.cancel()
        server.close()


def run(scenario):
    async def within():
        async with forwarding() as parts:
            await scenario(*parts)

    asyncio.run(asyncio.wait_for(within(), 60))


def test_connections_end_from_either_side():
    async def scenario(client, pod, forward):
        for request in range(3):
            client.connect(request)
            client.say(data_frame(4 * request + 3, b"hello", fin=True))
        for request in range(3):
            await client.until(lambda stream=4 * request + 3: client.is_over(stream))
            assert client.received(4 * request + 3) == b"HELLOEND"
            await client.until(lambda stream=4 * request + 1: client.is_over(stream))
            assert client.received(4 * request + 1) == b""

    run(scenario)


def test_a_client_that_resets_a_stream_closes_its_connection():
    async def scenario(client, pod, forward):
        client.connect(0)
        client.say(data_frame(3, b"hello"))
        await client.until(lambda: client.received(3) == b"HELLO")
        client.say(reset_frame(3, Reset.CANCEL))
        await client.until(lambda: not pod.open)

    run(scenario)


@pytest.mark.parametrize(
    ("port", "error"),
    [
        ("81", b"nothing listens on 81"),
        ("0", b"not a number"),
        ("x" * 99, b"not a number"),
        ("000080" + "1" * 9, b"not a number"),
        ("1" * 9000, b"not a number"),
    ],
)
def test_an_error_is_told_on_the_stream_for_errors(port, error):
    async def scenario(client, pod, forward):
        client.connect(0, port)
        await client.until(lambda: client.is_over(1) and client.is_over(3))
        assert error in client.received(1)

    run(scenario)


def test_streams_that_are_no_pair_are_reset(monkeypatch):
    monkeypatch.setattr(port_forward, "PAIR_TIMEOUT", 0.1)

    async def scenario(client, pod, forward):
        client.say(client.open(1, "video", 0), client.open(3, "data", 1), client.open(5, "data", 1))
        await client.until(lambda: all(client.is_over(stream) for stream in (1, 3, 5)))
        assert not forward._pairs

    run(scenario)


def test_streams_that_are_opened_and_reset_again_and_again_take_no_memory():
    async def scenario(client, pod, forward):
        for number in range(3 * MOST_SPDY_STREAMS):
            stream = 2 * number + 1
            client.say(client.open(stream, "data", number), reset_frame(stream, Reset.CANCEL))
        await client.until(client._incoming.empty)
        assert len(forward._pairs) <= MOST_SPDY_STREAMS
        assert client.is_over(6 * MOST_SPDY_STREAMS - 1)

    run(scenario)
