"""Somebody between a scheduler and the API server who makes trouble as a test tells him to."""

from __future__ import annotations

import asyncio
import json
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from enum import Enum
from typing import NamedTuple

import aiohttp
from aiohttp import web

from tests.kubernetes.controlplane import ControlPlane
from tests.kubernetes.scheduler_cluster import SchedulerCluster

WATCH = "?watch"
"""What the path of a watch ends with, in a rule."""


class Trouble(Enum):
    """What may happen to a request."""

    LOSE_ANSWER = "carried out, and the answer lost"
    LOSE_REQUEST = "never arrives"


Fault = Trouble | int | None
"""Some trouble, an answer with this status, or none."""


class Seen(NamedTuple):
    """A request that reached the API server, and its answer."""

    method: str
    path: str
    status: int
    body: bytes = b""


class Between:
    """A proxy; `rule` says what happens to a request of this method and path, the how-manieth it is of its kind."""

    def __init__(self, plane: ControlPlane):
        self.rule: Callable[[str, str, int], Fault] = lambda method, path, count: None
        self.seen: list[Seen] = []
        self.url = ""
        self._server = plane.server
        self._trust = ssl.create_default_context(cafile=str(plane.folder / "pki" / "ca.crt"))
        self._counts: dict[tuple[str, str], int] = {}
        self._streams: set[asyncio.Transport] = set()
        self._loop: asyncio.AbstractEventLoop | None = None

    @property
    def binds(self) -> dict[str, int]:
        """How often each pod was bound, as the API server says."""
        done: dict[str, int] = {}
        for request in self.seen:
            if request.path.endswith("/binding") and request.status == 201:
                done[request.path] = done.get(request.path, 0) + 1
        return done

    def all_is_well(self, cluster: SchedulerCluster, pods: int) -> None:
        """Each pod bound once, no node too full, the mirror as it should be."""
        assert len(self.binds) == pods
        assert set(self.binds.values()) == {1}
        cluster.check_capacity()
        status, text = cluster.schedulers[-1].get("/debug/consistency")
        assert (status, json.loads(text)["differences"]) == (200, [])

    def cut_watches(self) -> None:
        """Break every watch off."""
        assert self._loop is not None
        self._loop.call_soon_threadsafe(lambda: [stream.abort() for stream in list(self._streams)])

    async def _pass_on(self, request: web.Request) -> web.StreamResponse:
        watch = "watch=true" in request.query_string
        kind = (request.method, request.path + WATCH * watch)
        count = self._counts[kind] = self._counts.get(kind, 0) + 1
        fault = self.rule(*kind, count)
        if isinstance(fault, int):
            headers = {"Retry-After": "1"} if fault == 429 else {}
            body = {
                "kind": "Status",
                "status": "Failure",
                "code": fault,
                "message": "trouble",
                "reason": "Test",
            }
            return web.json_response(body, status=fault, headers=headers)
        if fault is Trouble.LOSE_REQUEST:
            return self._break_off(request)
        headers = {
            key: value for key, value in request.headers.items() if key not in ("Host", "Content-Length")
        }
        body = await request.read()
        async with self._session.request(
            request.method, self._server + request.path_qs, data=body or None, headers=headers
        ) as answer:
            if watch:
                return await self._stream(request, answer)
            content = await answer.read()
            self.seen.append(Seen(request.method, request.path, answer.status, body))
            if fault is Trouble.LOSE_ANSWER:
                return self._break_off(request)
            return web.Response(body=content, status=answer.status, content_type=answer.content_type)

    async def _stream(self, request: web.Request, answer: aiohttp.ClientResponse) -> web.StreamResponse:
        passed = web.StreamResponse(status=answer.status)
        await passed.prepare(request)
        assert isinstance(request.transport, asyncio.Transport)
        self._streams.add(request.transport)
        try:
            async for piece in answer.content.iter_any():
                await passed.write(piece)
        finally:
            self._streams.discard(request.transport)
        return passed

    def _break_off(self, request: web.Request) -> web.StreamResponse:
        if request.transport is not None:
            request.transport.abort()  # type: ignore[attr-defined]
        return web.Response()

    async def _serve(self, ready: threading.Event, stop: asyncio.Event) -> None:
        connector = aiohttp.TCPConnector(ssl=self._trust, limit=0)
        timeout = aiohttp.ClientTimeout(total=None)
        async with aiohttp.ClientSession(
            connector=connector, timeout=timeout, auto_decompress=False
        ) as session:
            self._session = session
            app = web.Application(client_max_size=64 * 1024 * 1024)
            app.router.add_route("*", "/{path:.*}", self._pass_on)
            runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1, handler_cancellation=True)
            await runner.setup()
            await web.TCPSite(runner, "127.0.0.1", 0).start()
            self.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
            ready.set()
            await stop.wait()
            await runner.cleanup()
        await asyncio.sleep(0.1)  # connections take a moment to close


@contextmanager
def between(plane: ControlPlane) -> Iterator[Between]:
    """Such a proxy, in a thread of its own."""
    proxy, ready = Between(plane), threading.Event()
    loop = proxy._loop = asyncio.new_event_loop()
    loop.set_exception_handler(lambda *_: None)
    stop = asyncio.Event()
    thread = threading.Thread(target=lambda: loop.run_until_complete(proxy._serve(ready, stop)))
    thread.start()
    try:
        assert ready.wait(20)
        yield proxy
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join(20)
        with suppress(RuntimeError):
            loop.close()
