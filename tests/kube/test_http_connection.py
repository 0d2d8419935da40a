"""Exchanges over real connections: kept where that is safe, let go where it is not."""

from __future__ import annotations

import asyncio
import socket
import ssl
import threading
from itertools import count
from typing import Any

import pytest

from stromboli.kube.http_connection import (
    BadResponse,
    Connection,
    ConnectionPool,
    HttpResponse,
    OpenedConnection,
)
from stromboli.kube.request import Request, RequestWithdrawn
from tests.serving import CERTIFICATE, behaving

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"


class Counting:
    """Answers every request; counts connections and keeps what was said on them."""

    def __init__(self, answer: bytes = OK, hang_up: bool = False) -> None:
        self.links = 0
        self.received: list[bytes] = []
        self._answer = answer
        self._hang_up = hang_up

    def __call__(self, link: socket.socket, over: threading.Event) -> None:
        self.links += 1
        while received := link.recv(65536):
            self.received.append(received)
            link.sendall(self._answer)
            if self._hang_up:
                return


def talk(
    server: Any, times: int, pause: float = 0.0, side_by_side: bool = False, **options: Any
) -> list[HttpResponse]:
    async def story(url: str) -> list[HttpResponse]:
        pool, context = ConnectionPool(url, **options), ssl.create_default_context()

        async def request() -> HttpResponse:
            return await pool.send(Request("POST", "/x", b"{}"), (("A", "b"),), context, 1000)

        try:
            if side_by_side:
                return list(await asyncio.gather(*(request() for _ in range(times))))
            outcomes = []
            for _ in range(times):
                outcomes.append(await request())
                await asyncio.sleep(pause)
            return outcomes
        finally:
            await pool.close()

    with behaving(server) as url:
        return asyncio.run(story(url))


def test_one_connection_serves_one_exchange_after_the_other() -> None:
    server = Counting()
    assert [response.body for response in talk(server, 5)] == [b"{}"] * 5
    assert server.links == 1


def test_what_is_no_longer_wanted_never_leaves_and_its_connection_is_kept() -> None:
    server = Counting()
    wanted = iter([True, False, True])

    async def story(url: str) -> list[str]:
        pool, context, outcomes = ConnectionPool(url), ssl.create_default_context(), []
        for path in ("/a", "/b", "/c"):
            try:
                await pool.send(
                    Request("POST", path, b"{}", still_wanted=lambda: next(wanted)), (), context, 1000
                )
                outcomes.append(path)
            except RequestWithdrawn:
                outcomes.append("withdrawn")
        await pool.close()
        await asyncio.sleep(0)
        return outcomes

    with behaving(server) as url:
        assert asyncio.run(story(url)) == ["/a", "withdrawn", "/c"]
    assert [received.split()[1] for received in server.received] == [b"/a", b"/c"]
    assert server.links == 1


def test_exchanges_at_once_have_a_connection_each() -> None:
    server = Counting()
    talk(server, 5, side_by_side=True)
    assert server.links == 5


def test_a_request_says_all_that_it_must() -> None:
    server = Counting()
    talk(server, 1, headers=(("Accept", "application/json"),))
    head, _, body = server.received[0].decode().partition("\r\n\r\n")
    lines = head.split("\r\n")
    assert lines[0] == "POST /x HTTP/1.1"
    assert lines[1].startswith("Host: 127.0.0.1:")
    assert lines[2:] == ["Accept: application/json", "A: b", "Content-Length: 2"]
    assert body == "{}"


def test_a_connection_that_the_server_closed_meanwhile_is_not_used_again() -> None:
    server = Counting(hang_up=True)
    assert len(talk(server, 3, pause=0.05)) == 3
    assert server.links == 3


@pytest.mark.parametrize(("seconds", "links"), [(10, 1), (20, 4)])
def test_a_connection_that_lay_idle_for_long_is_not_trusted(seconds: int, links: int) -> None:
    server, times = Counting(), count(0.0, seconds)
    talk(server, 4, clock=lambda: next(times))
    assert server.links == links


def test_a_connection_on_which_the_server_spoke_out_of_turn_is_not_used_again() -> None:
    server = Counting(OK + b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nforged")
    assert [response.body for response in talk(server, 2, pause=0.05)] == [b"{}"] * 2
    assert server.links == 2


@pytest.mark.parametrize("path", ["/x y", "/x\r\nHost: other", "/ä", ""])
def test_a_path_cannot_smuggle_a_second_request_in(path: str) -> None:
    async def story() -> None:
        await ConnectionPool("http://127.0.0.1:1").send(
            Request("GET", path), (), ssl.create_default_context(), 10
        )

    with pytest.raises(BadResponse, match="cannot be asked for"):
        asyncio.run(story())


def test_a_header_cannot_either() -> None:
    with pytest.raises(BadResponse, match="cannot be sent"):
        talk(Counting(), 1, headers=(("Impersonate-User", "me\r\nHost: other"),))


def test_whoever_stops_waiting_leaves_no_connection_behind_on_which_the_answer_may_still_come() -> None:
    """The second exchange must not be given the answer of the first."""
    late = threading.Event()

    def slow_once(link: socket.socket, over: threading.Event) -> None:
        while link.recv(65536):
            if not late.is_set():
                late.set()
                over.wait(0.3)
                link.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nlate")
            else:
                link.sendall(OK)

    async def story(url: str) -> bytes:
        pool, context = ConnectionPool(url), ssl.create_default_context()
        first = asyncio.create_task(pool.send(Request("GET", "/x"), (), context, 10))
        await asyncio.to_thread(late.wait, 30)
        first.cancel()
        with pytest.raises(asyncio.CancelledError):
            await first
        answer = await pool.send(Request("GET", "/x"), (), context, 10)
        await pool.close()
        await asyncio.sleep(0)
        return answer.body

    with behaving(slow_once) as url:
        assert asyncio.run(story(url)) == b"{}"


def test_a_connection_whose_opening_is_cancelled_is_closed_without_waiting_for_the_server(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    server_context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server_context.load_cert_chain(CERTIFICATE)

    def silent(link: socket.socket, over: threading.Event) -> None:
        with server_context.wrap_socket(link, server_side=True):
            over.wait(30)

    async def story(url: str) -> None:
        links: list[Any] = []

        def connected(self: Connection, transport: asyncio.BaseTransport) -> None:
            """Between the end of the handshake and the turn of whoever opens the connection."""
            OpenedConnection.connection_made(self, transport)
            links.append(transport.get_extra_info("socket"))
            opening.cancel()

        monkeypatch.setattr(Connection, "connection_made", connected)
        context = ssl.create_default_context(cafile=str(CERTIFICATE))
        pool = ConnectionPool(url.replace("http:", "https:"), "localhost")
        opening = asyncio.create_task(pool.send(Request("GET", "/x"), (), context, 10))
        with pytest.raises(asyncio.CancelledError):
            await opening
        await pool.close()
        assert [link.fileno() for link in links] == [-1]

    with behaving(silent) as url:
        asyncio.run(story(url))


def test_a_connection_with_a_certificate_that_was_renewed_meanwhile_is_closed() -> None:
    """It must neither be used again nor stay open."""
    arrived, answered, closed = threading.Event(), threading.Event(), threading.Event()

    def slow_once(link: socket.socket, over: threading.Event) -> None:
        if b"/slow" in link.recv(65536):
            arrived.set()
            answered.wait(30)
            link.sendall(OK)
            if not link.recv(65536):
                closed.set()
        else:
            link.sendall(OK)
            over.wait(30)

    async def story(url: str) -> bool:
        pool, old, new = ConnectionPool(url), ssl.create_default_context(), ssl.create_default_context()
        slow = asyncio.create_task(pool.send(Request("GET", "/slow"), (), old, 10))
        await asyncio.to_thread(arrived.wait, 30)
        await pool.send(Request("GET", "/x"), (), new, 10)
        answered.set()
        await slow
        done = await asyncio.to_thread(closed.wait, 30)
        await pool.close()
        return done

    with behaving(slow_once) as url:
        assert asyncio.run(story(url))
