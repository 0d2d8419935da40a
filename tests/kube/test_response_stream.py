"""A watch over our own connections: pieces as they come, its end, and everything that breaks it."""

from __future__ import annotations

import asyncio
import socket
import threading
from typing import Any

import pytest

from stromboli.kube.api_client import Client
from stromboli.kube.cluster_access import Access
from stromboli.kube.http_connection import MAX_UNREAD_BYTES, ResponseStream
from stromboli.kube.request import ApiError, NoResponse
from tests.serving import behaving

HEAD = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


class Transport(asyncio.Transport):
    """A connection on which all goes well."""

    aborted = False

    def write(self, data: Any) -> None: ...

    def resume_reading(self) -> None: ...

    def abort(self) -> None:
        self.aborted = True


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


def saying(*parts: bytes, pause: float = 0.0) -> Any:
    """A server that sends these bytes and hangs up."""

    def behave(link: socket.socket, over: threading.Event) -> None:
        link.recv(65536)
        for part in parts:
            link.sendall(part)
            over.wait(pause)

    return behave


def body_of(server: Any, idle_timeout: float = 30.0) -> bytes:
    """All that a stream brings until it ends."""

    async def story(url: str) -> bytes:
        async with Client(Access(url)) as client, client.stream("/x", idle_timeout) as pieces:
            return b"".join([piece async for piece in pieces])

    with behaving(server) as url:
        return asyncio.run(story(url))


def test_pieces_come_in_order_until_the_last_chunk() -> None:
    data = HEAD + chunk(b"one\n") + chunk(b"two\n") + chunk(b"")
    assert body_of(saying(data)) == b"one\ntwo\n"
    assert (
        body_of(saying(*(data[at : at + 7] for at in range(0, len(data), 7)), pause=0.001)) == b"one\ntwo\n"
    )


@pytest.mark.parametrize(
    ("said", "body"),
    [
        (b"HTTP/1.1 200 OK\r\n\r\nto the end", b"to the end"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc", b"abc"),
        (b"HTTP/1.1 100 Continue\r\n\r\n" + HEAD + chunk(b"x") + chunk(b""), b"x"),
    ],
)
def test_a_body_ends_as_its_head_says(said: bytes, body: bytes) -> None:
    assert body_of(saying(said)) == body


@pytest.mark.parametrize(
    "said", [b"", HEAD[:20], HEAD, HEAD + b"ff\r\nhalf", HEAD + b"zz\r\n", b"SSH-2.0\r\n\r\n"]
)
def test_a_connection_that_breaks_is_no_response(said: bytes) -> None:
    with pytest.raises(NoResponse):
        body_of(saying(said))


def test_a_refusal_in_chunks_is_read_whole() -> None:
    refusal = b"HTTP/1.1 410 Gone\r\nTransfer-Encoding: chunked\r\n\r\n"
    parts = chunk(b'{"reason": "Expired",'), chunk(b' "message": "too old"}') + chunk(b"")
    with pytest.raises(ApiError, match="too old") as failed:
        body_of(saying(refusal, *parts, pause=0.01))
    assert (failed.value.status, failed.value.reason) == (410, "Expired")


@pytest.mark.parametrize("head", [HEAD, HEAD.replace(b"200 OK", b"410 Gone")])
def test_what_comes_after_the_last_chunk_is_not_read(head: bytes) -> None:
    """Else the body would come again with every further packet, and what was received would grow for ever."""

    async def story(parts: list[bytes]) -> tuple[list[bytes], bool]:
        stream, transport = ResponseStream(1000), Transport()
        stream.connection_made(transport)
        for part in parts:
            stream.data_received(part)
        refusal = await stream.begin(b"", 5)
        body = [refusal.body] if refusal is not None else [piece async for piece in stream.pieces(5)]
        return body, transport.aborted

    data = head + chunk(b"x") + chunk(b"")
    assert asyncio.run(story([data])) == ([b"x"], False)
    assert asyncio.run(story([data, b"more", b"and more"])) == ([b"x"], True)


def test_silence_ends_a_stream() -> None:
    with pytest.raises(NoResponse, match="in time"):
        body_of(saying(HEAD + chunk(b"x"), pause=3), idle_timeout=0.1)


def test_a_reader_that_is_slow_is_not_flooded() -> None:
    """The server is stopped by the full connection, and nothing of what it sent is lost."""
    large, sent = chunk(b"x" * 65536), 400

    async def story(url: str) -> tuple[int, int]:
        async with Client(Access(url)) as client, client.stream("/x", 30) as pieces:
            await asyncio.sleep(0.2)
            first = await anext(aiter(pieces))
            rest = [len(piece) async for piece in pieces]
            return len(first), len(first) + sum(rest)

    with behaving(saying(HEAD, *[large] * sent, chunk(b""))) as url:
        first, total = asyncio.run(story(url))
    assert first < 2 * MAX_UNREAD_BYTES
    assert total == sent * 65536
