"""A request that cannot be read costs a line of the log at most, on every server of ours."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

import pytest
from aiohttp import web
from aiohttp.http import HttpProcessingError

from stromboli.admission.rules.admission_table import REVIEWS
from stromboli.admission.webhook_handler import handler
from stromboli.daemon import request_log
from stromboli.daemon.http_listener import HttpListener
from stromboli.daemon.request_log import MalformedRequests
from tests.admission.reviewing import cluster
from tests.raw_http import GARBAGE, exchange, post, status_of

JOBS = "/jobs/validate"
JSON = "Content-Type: application/json"


@pytest.fixture(autouse=True)
def fresh_log(monkeypatch: pytest.MonkeyPatch) -> None:
    """No lines that earlier tests left out are counted."""
    monkeypatch.setattr(request_log.request_log, "filters", [MalformedRequests()])


def told(caplog: pytest.LogCaptureFixture) -> list[logging.LogRecord]:
    """What was logged about requests."""
    return [record for record in caplog.records if record.name == request_log.__name__]


async def serve(test: Callable[[int], Awaitable[None]]) -> None:
    """A server with a health endpoint, a webhook and a handler that is broken."""

    async def healthz(_: web.Request) -> web.Response:
        return web.Response(text="ok")

    async def broken(_: web.Request) -> web.Response:
        raise LookupError("our own mistake")

    async def context_for(*_: object) -> object:
        return cluster()

    app = web.Application()
    app.router.add_get("/healthz", healthz)
    app.router.add_get("/broken", broken)
    app.router.add_post(JOBS, handler(REVIEWS[JOBS], context_for))  # type: ignore[arg-type]
    listener = HttpListener(web.AppRunner(app, access_log=None, shutdown_timeout=0.1))
    await listener.start("127.0.0.1", 0)
    try:
        await test(listener.port)
    finally:
        await listener.stop()


def test_garbage_is_answered_and_costs_a_line(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(request_log, "PAUSE", 0.0)

    async def test(port: int) -> None:
        for garbage in GARBAGE:
            caplog.clear()
            assert status_of(await exchange(port, garbage)) == 400, garbage[:60]
            assert len(told(caplog)) <= 1
            assert not any(record.exc_info for record in told(caplog))
            assert all(
                len(line) < 500 and line.startswith("malformed request from 127.0.0.1: ")
                for line in (record.getMessage() for record in told(caplog))
            )
        assert b"ok" in await exchange(port, b"GET /healthz HTTP/1.0\r\n\r\n")

    asyncio.run(serve(test))


@pytest.mark.parametrize("encoding", ["deflate", "gzip"])
def test_a_body_that_is_not_compressed_as_it_says_is_refused(
    encoding: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def test(port: int) -> None:
        answer = await exchange(port, post(JOBS, b"garbage", JSON, f"Content-Encoding: {encoding}"))
        assert status_of(answer) == 400
        assert b"the body cannot be read" in answer
        request = post("/healthz", b"garbage", f"Content-Encoding: {encoding}").replace(b"POST", b"GET")
        assert b"ok" in await exchange(port, request)
        assert not any(record.exc_info for record in caplog.records)

    asyncio.run(serve(test))


def test_what_cannot_be_expected_is_refused() -> None:
    async def test(port: int) -> None:
        for path in (JOBS, "/healthz"):
            request = post(path, b"", "Expect: wonders")
            request = request if path == JOBS else request.replace(b"POST", b"GET")
            assert status_of(await exchange(port, request)) == 417
        assert (await exchange(port, post(JOBS, b"{", JSON, "Expect: 100-continue"))).startswith(
            b"HTTP/1.1 100 "
        )

    asyncio.run(serve(test))


def test_a_mistake_of_ours_is_told_in_full(caplog: pytest.LogCaptureFixture) -> None:
    async def test(port: int) -> None:
        assert status_of(await exchange(port, b"GET /broken HTTP/1.0\r\n\r\n")) == 500
        (record,) = told(caplog)
        assert record.exc_info is not None
        assert isinstance(record.exc_info[1], LookupError)

    asyncio.run(serve(test))


def test_a_flood_of_garbage_is_no_flood_of_lines() -> None:
    now = [0.0]
    log = logging.Logger("flood")
    lines: list[str] = []
    log.addFilter(MalformedRequests(lambda: now[0]))
    log.addHandler(_Collector(lines))

    def fail(error: Exception) -> None:
        log.error("Error handling request from %s", "::1", exc_info=error)

    for _ in range(100):
        fail(HttpProcessingError(message="no\nHTTP"))
    fail(ConnectionResetError("gone"))
    now[0] = 1.0
    fail(HttpProcessingError(message="x" * 1000))
    assert lines[0] == "malformed request from ::1: 0, message: no HTTP"
    assert lines[1].startswith("malformed request from ::1 (and 99 others before): 0, message: xxx")
    assert len(lines) == 2
    assert len(lines[1]) < 300


class _Collector(logging.Handler):
    def __init__(self, lines: list[str]) -> None:
        super().__init__()
        self._lines = lines

    def emit(self, record: logging.LogRecord) -> None:
        self._lines.append(self.format(record))
