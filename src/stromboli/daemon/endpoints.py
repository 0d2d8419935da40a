"""The HTTP endpoints of a daemon: health, metrics, and routes of its own (spec 05 1.4)."""

from __future__ import annotations

import ssl
from collections.abc import Awaitable, Callable
from typing import Protocol

from aiohttp import web

from stromboli.daemon.common_options import CommonOptions
from stromboli.daemon.connection_limits import ConnectionLimits
from stromboli.daemon.flags import BadFlag
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
    ):
        """`add_routes` adds to the server of the metrics."""
        self._options = options
        self._status = status
        self._add_routes = add_routes
        self._listeners: list[HttpListener] = []
        self.ports: dict[str, int] = {}
        """The port of each server, by name."""

    async def start(self) -> None:
        """Listen; `OSError` if an address is in use."""
        options = self._options
        if options.enable_healthz:
            await self._serve("health", self._health_app(), options.healthz_address, _tls(options))
        if options.enable_metrics or self._add_routes is not None:
            await self._serve("metrics", self._metrics_app(), options.listen_address, None)

    async def stop(self) -> None:
        for listener in self._listeners:
            await listener.stop()

    async def _serve(self, name: str, app: web.Application, address: str, tls: ssl.SSLContext | None) -> None:
        host, port = split_address(address)
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=GRACE, handle_signals=False)
        listener = HttpListener(runner, LIMITS, tls)
        self._listeners.append(listener)
        await listener.start(host, port)
        self.ports[name] = listener.port

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


def split_address(address: str) -> tuple[str | None, int]:
    """`:8080` is every address; `[::1]:8080` one of IPv6."""
    host, colon, port = address.rpartition(":")
    if not colon or not port.isdecimal() or int(port) > 65535:
        raise BadFlag(f"{address!r} is no address such as :8080 or 127.0.0.1:8080")
    return host.strip("[]") or None, int(port)


def _tls(options: CommonOptions) -> ssl.SSLContext | None:
    """TLS for the health endpoint, if all three files are given."""
    if not (options.ca_cert_file and options.tls_cert_file and options.tls_private_key_file):
        return None
    try:
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=options.ca_cert_file)
    except OSError as error:
        raise BadFlag(f"--ca-cert-file: {options.ca_cert_file}: no certificates: {error}") from None
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.verify_mode = ssl.CERT_OPTIONAL
    certificate, key = options.tls_cert_file, options.tls_private_key_file
    try:
        context.load_cert_chain(certificate, key, password="")  # never ask on a terminal
    except OSError as error:
        raise BadFlag(
            f"--tls-cert-file {certificate}, --tls-private-key-file {key}: not a certificate and its key as PEM"
            f" without a password: {error}"
        ) from None
    return context


async def _ok(_: web.Request) -> web.Response:
    return web.Response(text="ok")
