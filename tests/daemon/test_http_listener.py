"""Clients that are slow, idle or too many lose their connections, and the others notice nothing."""

from __future__ import annotations

import asyncio
import resource
import socket
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress

import pytest
from aiohttp import web

from stromboli.daemon.connection_limits import (
    BODY_TIME,
    HEADER_TIME,
    TLS_BUFFER,
    ConnectionLimits,
    raise_descriptor_limit,
)
from stromboli.daemon.guarded_connection import Connection, Header, Phase
from stromboli.daemon.http_listener import HttpListener
from stromboli.daemon.request_connection import prove, stream
from tests.loop_time import forward
from tests.serving import CERTIFICATE

LARGE = b"x" * 20_000_000
"""More than the buffers of two sockets."""
PART = 32 * 1024
USER_CONNECTIONS = 3
LATE = 40
"""Seconds for which a handler does not read the body."""
PATIENCE = 20.0
"""Seconds after which a test fails."""
BOTH = pytest.mark.parametrize("tls", [False, True], ids=["plain", "tls"])

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


async def _answer(request: web.BaseRequest) -> web.StreamResponse:
    user = request.headers.get("Authorization")
    if user is not None and not prove(request, user, USER_CONNECTIONS):
        return web.Response(status=429, body=b"too many")
    if request.path == "/large":
        return web.Response(body=LARGE)
    if request.path == "/watch":
        stream(request)
        response = web.StreamResponse()
        await response.prepare(request)
        for _ in range(2):
            await response.write(LARGE)
        await response.write(b"end")
        return response
    if request.path == "/parts":
        return web.Response(body=_parts(request))
    if request.path == "/late":
        await asyncio.sleep(LATE)
    return web.Response(body=await request.read() or b"ok")


async def _parts(request: web.BaseRequest) -> AsyncIterator[bytes]:
    """A body that is made as it is read."""
    assert request.transport is not None
    request.transport.set_write_buffer_limits(PART)
    request.transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, PART)
    for _ in range(200):
        yield b"x" * PART


class Site:
    """A listener, and connections to it."""

    def __init__(self, listener: HttpListener, tls: bool) -> None:
        self._listener = listener
        self._tls = tls
        self._writers: list[asyncio.StreamWriter] = []

    async def connect(self, receive_buffer: int = 0) -> Streams:
        context = None
        if self._tls:
            context = ssl.create_default_context()
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        client = socket.socket()
        if receive_buffer:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        client.connect(("127.0.0.1", self._listener.port))
        host = "localhost" if context is not None else None
        reader, writer = await asyncio.open_connection(sock=client, ssl=context, server_hostname=host)
        self._writers.append(writer)
        return reader, writer

    async def send(self, text: str) -> Streams:
        reader, writer = await self.connect()
        writer.write(text.encode())
        return reader, writer

    async def close(self) -> None:
        for writer in self._writers:
            writer.transport.abort()
        await self._listener.stop()

    @property
    def connections(self) -> int:
        assert self._listener._guard is not None
        return len(self._listener._guard)

    @property
    def connection(self) -> Connection:
        """The only one."""
        assert self._listener._guard is not None
        (connection,) = (each for phase in self._listener._guard._phases.values() for each in phase)
        return connection

    @property
    def serving(self) -> int:
        """Connections with a request under way that was authenticated."""
        assert self._listener._guard is not None
        return len(self._listener._guard._phases[Phase.REQUEST])


@asynccontextmanager
async def listening(tls: bool = False, **limits: float) -> AsyncIterator[Site]:
    context = None
    if tls:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(CERTIFICATE)
    runner = web.ServerRunner(web.Server(_answer, access_log=None), shutdown_timeout=0.1)
    listener = HttpListener(runner, ConnectionLimits(**limits), context)  # type: ignore[arg-type]
    await listener.start("127.0.0.1", 0)
    site = Site(listener, tls)
    try:
        yield site
    finally:
        await site.close()


def request(path: str = "/", *headers: str) -> str:
    return "\r\n".join([f"GET {path} HTTP/1.1", "Host: x", *headers, "", ""])


async def response(streams: Streams) -> bytes:
    head = await asyncio.wait_for(streams[0].readuntil(b"\r\n\r\n"), PATIENCE)
    (length,) = (line for line in head.splitlines() if line.lower().startswith(b"content-length:"))
    return await streams[0].readexactly(int(length.split()[1]))


async def ended(streams: Streams) -> bytes:
    """What comes until the server hangs up."""
    with suppress(ConnectionError):
        return await asyncio.wait_for(streams[0].read(), PATIENCE)
    return b""


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE):
        while not condition():
            await asyncio.sleep(0.01)


@BOTH
@pytest.mark.parametrize("sent", ["", "GET / HTTP/1.1\r\nHo", "\r\n"], ids=["nothing", "half", "a line"])
def test_a_header_has_to_come_in_time(tls: bool, sent: str) -> None:
    async def story() -> None:
        async with listening(tls) as site:
            streams = await site.send(sent)
            await until(lambda: site.connections == 1)
            await forward(HEADER_TIME)
            assert await ended(streams) == b""

    asyncio.run(story())


def test_a_tls_handshake_has_to_come_in_time() -> None:
    async def story() -> None:
        async with listening(tls=True, header_time=0.2) as site:
            site._tls = False
            assert await ended(await site.connect()) == b""
            await until(lambda: site.connections == 0)

    asyncio.run(story())


@BOTH
def test_the_header_of_a_further_request_has_to_come_in_time_too(tls: bool) -> None:
    async def story() -> None:
        async with listening(tls) as site:
            streams = await site.send(request())
            assert await response(streams) == b"ok"
            streams[1].write(b"GET / HTTP")
            await until(lambda: site.connection._header is Header.BEGUN)
            await forward(HEADER_TIME)
            assert await ended(streams) == b""

    asyncio.run(story())


@BOTH
def test_a_header_that_does_not_end_is_refused(tls: bool) -> None:
    async def story() -> None:
        async with listening(tls) as site:
            reader, writer = await site.send("GET / HTTP/1.1\r\nHost: x\r\n")
            reading = asyncio.create_task(reader.read(100))
            await asyncio.sleep(0)  # let it wait: a reset that comes later takes nothing from it
            for number in range(17):  # the last is too much
                writer.write(b"X-%02d: %s\r\n" % (number, b"x" * 4000))
            assert (await asyncio.wait_for(reading, PATIENCE)).startswith(b"HTTP/1.1 431 ")

    asyncio.run(story())


@BOTH
def test_a_header_may_come_in_pieces_with_a_large_body_behind_it(tls: bool) -> None:
    async def story() -> None:
        async with listening(tls) as site:
            body = LARGE[:900_000]
            text = request("/", f"Content-Length: {len(body)}").encode() + body
            streams = await site.connect()
            for piece in (text[:30], text[30:-900_001], text[-900_001:-899_999], text[-899_999:]):
                streams[1].write(piece)
                await streams[1].drain()
                await asyncio.sleep(0.02)
            assert await response(streams) == body

    asyncio.run(story())


@BOTH
def test_a_body_that_trickles_is_not_waited_for(tls: bool) -> None:
    async def story() -> None:
        async with listening(tls, body_time=0.3) as site:
            reader, writer = await site.send(request("/", "Content-Length: 100000"))

            async def trickle() -> None:
                while True:
                    writer.write(b"x")
                    await asyncio.sleep(0.02)

            trickling = asyncio.create_task(trickle())
            assert await ended((reader, writer)) == b""
            trickling.cancel()
            await until(lambda: site.connections == 0)

    asyncio.run(story())


def test_a_large_body_has_more_time() -> None:
    async def story() -> None:
        async with listening(slowest=1) as site:
            streams = await site.send(request("/", "Content-Length: 102"))
            await until(lambda: site.connections == 1 and site.connection.phase is Phase.UNPROVEN_REQUEST)
            streams[1].write(b"x" * 100)  # what comes with the header does not count
            await until(lambda: site.connection._received == 100)
            await forward(2 * BODY_TIME)
            streams[1].write(b"yz")
            assert (await response(streams))[-3:] == b"xyz"

    asyncio.run(story())


@BOTH
def test_a_body_that_the_server_does_not_read_yet_is_not_late(tls: bool) -> None:
    async def story() -> None:
        async with listening(tls, write_time=1, slowest=10**9) as site:
            body = LARGE[:900_000]
            streams = await site.send(request("/late", f"Content-Length: {len(body)}"))
            streams[1].write(body)
            await until(lambda: site.connections == 1 and site.connection.phase is Phase.UNPROVEN_REQUEST)
            transport = site.connection._transport
            await until(lambda: transport is not None and not transport.is_reading())
            for _ in range(LATE + 1):
                await forward(1)
            assert await response(streams) == body

    asyncio.run(story())


@BOTH
def test_an_idle_connection_is_closed_politely(tls: bool) -> None:
    async def story() -> None:
        async with listening(tls, idle_time=0.2) as site:
            streams = await site.send(request())
            assert await response(streams) == b"ok"
            assert await asyncio.wait_for(streams[0].read(), PATIENCE) == b"", "an end, and no reset"

    asyncio.run(story())


@BOTH
def test_a_client_that_does_not_read_is_cut_off(tls: bool) -> None:
    async def story() -> None:
        async with listening(tls, write_time=0.3) as site:
            await site.send(request("/large"))
            await until(lambda: site.connections == 1)
            await until(lambda: site.connections == 0)

    asyncio.run(story())


@BOTH
def test_a_client_that_reads_gets_everything(tls: bool) -> None:
    async def story() -> None:
        async with listening(tls) as site:
            assert await response(await site.send(request("/large"))) == LARGE

    asyncio.run(story())


@BOTH
def test_a_client_that_reads_steadily_gets_everything_though_never_all_that_is_there(tls: bool) -> None:
    async def story() -> None:
        async with listening(tls, write_time=0.3, slowest=1) as site:
            reader, writer = await site.connect(receive_buffer=PART)
            writer.write(request("/parts").encode())
            size = 0
            async with asyncio.timeout(PATIENCE):
                while piece := await reader.read(PART):
                    size += len(piece)
                    if piece.endswith(b"0\r\n\r\n"):
                        break
                    await asyncio.sleep(0.01)
            assert size > 200 * PART

    asyncio.run(story())


@BOTH
def test_a_watch_is_not_cut_off_however_slowly_it_is_read(tls: bool) -> None:
    async def story() -> None:
        limits = {"write_time": 0.5, "idle_time": 0.1, "header_time": 5, "body_time": 0.1, "slowest": 1}
        async with listening(tls, **limits) as site:
            streams = await site.send(request("/watch", "Connection: close"))
            await asyncio.sleep(1.2)
            assert site.connections == 1
            assert b"end" in (await ended(streams))[-20:]

    asyncio.run(story())


@BOTH
def test_the_oldest_of_too_many_unknown_connections_goes(tls: bool) -> None:
    async def story() -> None:
        async with listening(tls, unproven=3) as site:
            known = await site.send(request("/", "Authorization: x"))
            assert await response(known) == b"ok"
            first = await site.send("GET / HT")
            others = [await site.send("GET / HT") for _ in range(2)]
            await until(lambda: site.connections == 4)
            last = await site.send(request())
            assert await response(last) == b"ok"
            assert await ended(first) == b""
            for streams in others:
                streams[1].write(b"TP/1.1\r\nHost: x\r\n\r\n")
                assert await response(streams) == b"ok"
            known[1].write(request().encode())
            assert await response(known) == b"ok", "it was authenticated, and stays"

    asyncio.run(story())


def test_of_too_many_connections_that_goes_which_was_idle_for_longest() -> None:
    async def story() -> None:
        async with listening(connections=2) as site:
            known = [await site.send(request("/", "Authorization: x")) for _ in range(2)]
            for streams in known:
                assert await response(streams) == b"ok"
            known[0][1].write(request().encode())
            assert await response(known[0]) == b"ok"
            assert await response(await site.send(request())) == b"ok"
            assert await ended(known[1]) == b""
            known[0][1].write(request().encode())
            assert await response(known[0]) == b"ok"

    asyncio.run(story())


@BOTH
def test_of_too_many_connections_of_a_user_that_goes_which_was_idle_for_longest(tls: bool) -> None:
    async def story() -> None:
        async with listening(tls) as site:
            of_ann = [await site.send(request("/", "Authorization: ann")) for _ in range(USER_CONNECTIONS)]
            of_bob = await site.send(request("/", "Authorization: bob"))
            for streams in (*of_ann, of_bob):
                assert await response(streams) == b"ok"
            of_ann[0][1].write(request("/", "Authorization: ann").encode())
            assert await response(of_ann[0]) == b"ok"
            assert await response(await site.send(request("/", "Authorization: ann"))) == b"ok"
            assert await ended(of_ann[1]) == b""
            for streams in (of_ann[0], of_ann[2], of_bob):
                streams[1].write(request().encode())
                assert await response(streams) == b"ok"

    asyncio.run(story())


def test_a_user_whose_connections_are_all_busy_is_refused_further_ones() -> None:
    async def story() -> None:
        async with listening() as site:
            head = request("/", "Authorization: ann", "Content-Length: 2")
            busy = [await site.send(head) for _ in range(USER_CONNECTIONS)]
            await until(lambda: site.serving == USER_CONNECTIONS)
            refused = await ended(await site.send(request("/", "Authorization: ann")))
            assert refused.endswith(b"too many"), "and the connection is closed"
            assert await response(await site.send(request("/", "Authorization: bob"))) == b"ok"
            busy[0][1].transport.abort()
            await until(lambda: site.serving == USER_CONNECTIONS - 1)
            assert await response(await site.send(request("/", "Authorization: ann"))) == b"ok"
            for streams in busy[1:]:
                streams[1].write(b"ab")
                assert await response(streams) == b"ab"

    asyncio.run(story())


def test_a_tls_connection_has_a_small_buffer() -> None:
    async def story() -> None:
        async with listening(tls=True) as site:
            assert await response(await site.send(request())) == b"ok"
            assert site._listener._guard is not None
            (connection,) = site._listener._guard._phases[Phase.WAITING]
            assert len(connection._socket.get_protocol()._ssl_buffer) == TLS_BUFFER  # type: ignore[attr-defined]

    asyncio.run(story())


def test_requests_under_way_are_never_given_up_for_new_connections() -> None:
    async def story() -> None:
        async with listening(connections=1) as site:
            busy = await site.send(request("/", "Authorization: x", "Content-Length: 2"))
            busy[1].write(b"a")
            await until(lambda: site.serving == 1)
            assert await ended(await site.send(request())) == b""
            busy[1].write(b"b")
            assert await response(busy) == b"ab"

    asyncio.run(story())


def test_without_free_descriptors_idle_connections_go_and_others_are_accepted(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def story() -> None:
        async with listening() as site:
            first = await site.send(request())
            assert await response(first) == b"ok"
            _, hard = before = resource.getrlimit(resource.RLIMIT_NOFILE)
            with socket.socket() as client:
                client.setblocking(False)
                free = client.fileno() + 1  # the lowest number that a further descriptor would get
                resource.setrlimit(resource.RLIMIT_NOFILE, (free, hard))
                try:
                    address = ("127.0.0.1", site._listener.port)
                    await asyncio.get_running_loop().sock_connect(client, address)
                    assert await ended(first) == b""
                finally:
                    resource.setrlimit(resource.RLIMIT_NOFILE, before)
                await asyncio.get_running_loop().sock_sendall(client, request().encode())
                async with asyncio.timeout(PATIENCE):
                    assert b"200" in await asyncio.get_running_loop().sock_recv(client, 100)

    asyncio.run(story())
    assert [record.message for record in caplog.records if record.levelname == "ERROR"] == [
        "cannot accept connections: Too many open files; raise the limit on open files (ulimit -n)"
    ]


def test_every_address_is_served_on_one_port() -> None:
    async def story() -> None:
        runner = web.ServerRunner(web.Server(_answer, access_log=None))
        listener = HttpListener(runner)
        await listener.start(None, 0)
        try:
            assert {listening.getsockname()[1] for listening in listener._sockets} == {listener.port}
            streams = await asyncio.open_connection("127.0.0.1", listener.port)
            streams[1].write(request().encode())
            assert await response(streams) == b"ok"
            streams[1].transport.abort()
        finally:
            await listener.stop()

    asyncio.run(story())


def test_an_address_that_is_in_use_is_an_error() -> None:
    async def story() -> None:
        async with listening() as site:
            listener = HttpListener(web.ServerRunner(web.Server(_answer)))
            with pytest.raises(OSError, match="in use"):
                await listener.start("127.0.0.1", site._listener.port)
            await listener.stop()

    asyncio.run(story())


def test_the_limit_on_descriptors_is_raised_as_far_as_it_may_be() -> None:
    soft, hard = before = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft // 2, hard))
        raise_descriptor_limit()
        assert resource.getrlimit(resource.RLIMIT_NOFILE)[0] >= soft
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


def test_connections_leave_half_of_the_descriptors_to_others() -> None:
    _, hard = before = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (1000, hard))
        limits = ConnectionLimits().within_descriptors()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
    assert (limits.connections, limits.unproven) == (500, 250)
