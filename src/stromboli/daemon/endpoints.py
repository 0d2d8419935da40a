"""What a process shows of itself over HTTP: health, metrics, and whatever else it wants to (spec 05 1.4)."""

from __future__ import annotations

import ssl
from collections.abc import Awaitable, Callable
from typing import Protocol

from aiohttp import web

from stromboli.daemon.flags import BadFlag

GRACE = 2.0
"""Seconds that a request under way may take when we stop."""


class Places(Protocol):
    """What the flags say of it."""

    @property
    def enable_healthz(self) -> bool: ...

    @property
    def healthz_address(self) -> str: ...

    @property
    def enable_metrics(self) -> bool: ...

    @property
    def listen_address(self) -> str: ...

    @property
    def ca_cert_file(self) -> str: ...

    @property
    def tls_cert_file(self) -> str: ...

    @property
    def tls_private_key_file(self) -> str: ...


class Inside(Protocol):
    """What there is to be shown."""

    def alive(self) -> str:
        """Nothing, or why we should be restarted."""

    def ready(self) -> str:
        """Nothing, or why we are not ready."""

    async def metrics(self) -> bytes: ...


class Endpoints:
    """The servers that the flags ask for."""

    def __init__(
        self, options: Places, inside: Inside, more: Callable[[web.Application], None] | None = None
    ):
        """`more` puts other pages beside the metrics."""
        self._options = options
        self._inside = inside
        self._more = more
        self._runners: list[web.AppRunner] = []
        self.ports: dict[str, int] = {}
        """Where each of them listens, by name."""

    async def start(self) -> None:
        """Serve; `OSError` if an address is taken."""
        options = self._options
        if options.enable_healthz:
            await self._serve("health", self._health(), options.healthz_address, _tls(options))
        if options.enable_metrics or self._more is not None:
            await self._serve("metrics", self._look_inside(), options.listen_address, None)

    async def stop(self) -> None:
        for runner in self._runners:
            await runner.cleanup()

    async def _serve(self, name: str, app: web.Application, address: str, tls: ssl.SSLContext | None) -> None:
        host, port = split_address(address)
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=GRACE, handle_signals=False)
        await runner.setup()
        self._runners.append(runner)
        await web.TCPSite(runner, host, port, ssl_context=tls).start()
        self.ports[name] = int(runner.addresses[0][1])

    def _health(self) -> web.Application:
        app = web.Application()
        app.router.add_get("/healthz", _always)
        app.router.add_get("/healthz/ping", _always)
        app.router.add_get("/livez", _verdict(self._inside.alive))
        app.router.add_get("/readyz", _verdict(self._inside.ready))
        return app

    def _look_inside(self) -> web.Application:
        app = web.Application()
        if self._options.enable_metrics:
            app.router.add_get("/metrics", self._metrics)
        if self._more is not None:
            self._more(app)
        return app

    async def _metrics(self, _: web.Request) -> web.Response:
        return web.Response(
            body=await self._inside.metrics(),
            headers={"Content-Type": "text/plain; version=0.0.4; charset=utf-8"},
        )


def split_address(address: str) -> tuple[str | None, int]:
    """`:8080` is every address; `[::1]:8080` one of IPv6."""
    host, colon, port = address.rpartition(":")
    if not colon or not port.isdecimal() or int(port) > 65535:
        raise BadFlag(f"{address!r} is no address such as :8080 or 127.0.0.1:8080")
    return host.strip("[]") or None, int(port)


def _tls(options: Places) -> ssl.SSLContext | None:
    """TLS for the health endpoint, if all three files are given."""
    if not (options.ca_cert_file and options.tls_cert_file and options.tls_private_key_file):
        return None
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=options.ca_cert_file)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.verify_mode = ssl.CERT_OPTIONAL
    context.load_cert_chain(options.tls_cert_file, options.tls_private_key_file)
    return context


async def _always(_: web.Request) -> web.Response:
    return web.Response(text="ok")


def _verdict(ask: Callable[[], str]) -> Callable[[web.Request], Awaitable[web.Response]]:
    async def answer(_: web.Request) -> web.Response:
        why = ask()
        return web.Response(text=why or "ok", status=503 if why else 200)

    return answer
