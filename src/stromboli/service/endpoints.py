"""What the process shows of itself over HTTP: health, metrics, and a look inside (spec 05 1.4)."""

from __future__ import annotations

import ssl
import sys
import traceback
from collections.abc import Awaitable, Callable
from typing import Protocol

from aiohttp import web
from msgspec import json

from stromboli.service.options import BadFlag, Options

GRACE = 2.0
"""Seconds that a request under way may take when we stop."""


class Inside(Protocol):
    """What there is to be shown."""

    def alive(self) -> str:
        """Nothing, or why we should be restarted."""

    def ready(self) -> str:
        """Nothing, or why we are not ready."""

    def metrics(self) -> bytes: ...

    async def consistency(self) -> list[str]:
        """Differences between the mirror and a fresh list."""

    async def dump(self) -> str:
        """Write the whole state to a file and say where."""


class Endpoints:
    """The servers that the flags ask for."""

    def __init__(self, options: Options, inside: Inside):
        self._options = options
        self._inside = inside
        self._runners: list[web.AppRunner] = []
        self.ports: dict[str, int] = {}
        """Where each of them listens, by name."""

    async def start(self) -> None:
        """Serve; `OSError` if an address is taken."""
        options = self._options
        if options.enable_healthz:
            await self._serve("health", self._health(), options.healthz_address, _tls(options))
        if options.enable_metrics or options.enable_pprof:
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
        if self._options.enable_pprof:
            app.router.add_get("/debug/consistency", self._consistency)
            app.router.add_post("/debug/dump", self._dump)
            app.router.add_get("/debug/stacks", _stacks)
        return app

    async def _metrics(self, _: web.Request) -> web.Response:
        return web.Response(
            body=self._inside.metrics(), headers={"Content-Type": "text/plain; version=0.0.4; charset=utf-8"}
        )

    async def _consistency(self, _: web.Request) -> web.Response:
        try:
            differences = await self._inside.consistency()
        except Unavailable as error:
            return web.json_response({"error": str(error)}, status=503)
        said = {"consistent": not differences, "differences": differences}
        return web.Response(
            body=json.encode(said), content_type="application/json", status=200 if not differences else 500
        )

    async def _dump(self, _: web.Request) -> web.Response:
        try:
            return web.json_response({"file": await self._inside.dump()})
        except Unavailable as error:
            return web.json_response({"error": str(error)}, status=503)


class Unavailable(Exception):
    """Not to be had just now."""


def split_address(address: str) -> tuple[str | None, int]:
    """`:8080` is every address; `[::1]:8080` one of IPv6."""
    host, colon, port = address.rpartition(":")
    if not colon or not port.isdecimal() or int(port) > 65535:
        raise BadFlag(f"{address!r} is no address such as :8080 or 127.0.0.1:8080")
    return host.strip("[]") or None, int(port)


def _tls(options: Options) -> ssl.SSLContext | None:
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


async def _stacks(_: web.Request) -> web.Response:
    """What every thread is doing."""
    shown = []
    for thread, frame in sys._current_frames().items():
        shown.append(f"thread {thread}\n" + "".join(traceback.format_stack(frame)))
    return web.Response(text="\n".join(shown))
