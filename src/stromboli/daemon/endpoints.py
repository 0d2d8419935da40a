"""The HTTP endpoints of a daemon: health, metrics, and routes of its own (spec 05 1.4)."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Awaitable, Callable
from typing import Protocol

from aiohttp import web

from stromboli.daemon.common_options import CommonOptions
from stromboli.daemon.connection_limits import ConnectionLimits
from stromboli.daemon.endpoint_sockets import HEALTH, METRICS, EndpointSockets
from stromboli.daemon.http_listener import HttpListener
from stromboli.daemon.telemetry_guard import TelemetryGuard

GRACE = 2.0
"""Seconds that a request under way may take when the process stops."""
LIMITS = ConnectionLimits(connections=128, unproven=128)
"""Of each server; nobody who asks for health or metrics says who he is."""


class Status(Protocol):
    """What the endpoints ask of a process."""

    def alive(self) -> str:
        """Empty, or why the process should be restarted."""

    def ready(self) -> str:
        """Empty, or why the process is not ready."""

    async def metrics(self) -> bytes: ...

    @property
    def guard(self) -> TelemetryGuard:
        """Of what these only tell."""


class Endpoints:
    """The servers that the flags enable."""

    def __init__(
        self,
        options: CommonOptions,
        status: Status,
        add_routes: Callable[[web.Application], None] | None = None,
        sockets: EndpointSockets | None = None,
    ):
        """`add_routes` adds to the server of the metrics. `sockets` may be open already."""
        self._options = options
        self._status = status
        self._add_routes = add_routes
        self._listeners: list[HttpListener] = []
        self._sockets = sockets or EndpointSockets(options, debugging=add_routes is not None)

    @property
    def ports(self) -> dict[str, int]:
        """The port of each server, by name."""
        return self._sockets.ports

    async def start(self) -> None:
        """Listen and serve; `OSError` if an address is in use."""
        await self._sockets.open()
        apps = {HEALTH: self._health_app, METRICS: self._metrics_app}
        for name, sockets in self._sockets.take().items():
            await self._serve(apps[name](), sockets, self._sockets.tls if name == HEALTH else None)

    async def stop(self) -> None:
        for listener in self._listeners:
            await listener.stop()

    async def _serve(
        self, app: web.Application, sockets: list[socket.socket], tls: ssl.SSLContext | None
    ) -> None:
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=GRACE, handle_signals=False)
        listener = HttpListener(runner, LIMITS, tls)
        self._listeners.append(listener)
        await listener.serve(sockets)

    def _health_app(self) -> web.Application:
        app = web.Application()
        app.router.add_get("/healthz", _ok)
        app.router.add_get("/healthz/ping", _ok)
        app.router.add_get("/livez", self._probe(self._status.alive, ""))
        app.router.add_get("/readyz", self._probe(self._status.ready, "cannot be told"))
        return app

    def _metrics_app(self) -> web.Application:
        app = web.Application()
        if self._options.enable_metrics:
            app.router.add_get("/metrics", self._metrics)
        if self._add_routes is not None:
            self._add_routes(app)
        return app

    async def _metrics(self, _: web.Request) -> web.Response:
        with self._status.guard("metrics page"):
            return web.Response(
                body=await self._status.metrics(),
                headers={"Content-Type": "text/plain; version=0.0.4; charset=utf-8"},
            )
        return web.Response(text="the metrics cannot be shown; see the log", status=500)

    def _probe(
        self, check: Callable[[], str], unknown: str
    ) -> Callable[[web.Request], Awaitable[web.Response]]:
        """A probe; `unknown` is its problem if the check itself fails, which must get nobody restarted."""

        async def respond(_: web.Request) -> web.Response:
            problem = unknown
            with self._status.guard("probe"):
                problem = check()
            return web.Response(text=problem or "ok", status=503 if problem else 200)

        return respond


async def _ok(_: web.Request) -> web.Response:
    return web.Response(text="ok")
