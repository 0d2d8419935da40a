"""Listens for a server of aiohttp, with limits on its connections (`connection_limits`)."""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
import time
from collections.abc import Awaitable, Callable
from functools import partial

from aiohttp import web

from stromboli.daemon.connection_guard import REST, ConnectionGuard
from stromboli.daemon.connection_limits import ConnectionLimits, shrink_tls_buffers
from stromboli.daemon.listening_sockets import open_sockets
from stromboli.daemon.request_connection import connection_of

log = logging.getLogger(__name__)

ACCEPTED_AT_ONCE = 16
"""Connections accepted before others get their turn."""
ACCEPT_PAUSE = 0.1
"""Seconds until the next try when a connection cannot be accepted."""

_Handler = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]


class HttpListener:
    """Serves what a runner handles, between `start` and `stop`."""

    def __init__(
        self,
        runner: web.BaseRunner,
        limits: ConnectionLimits = ConnectionLimits(),  # noqa: B008 - frozen
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self._runner = runner
        self._limits = limits
        self._tls = tls
        self._guard: ConnectionGuard | None = None
        self._sockets: list[socket.socket] = []
        self._accepting: set[asyncio.Task[object]] = set()
        self._told = -REST
        self.port = 0

    async def start(self, host: str | None, port: int) -> None:
        """Listen on an address, or on every one; `OSError` if that fails. Port 0 is any that is free."""
        await self.serve(await open_sockets(host, port))

    async def serve(self, sockets: list[socket.socket]) -> None:
        """Serve those who connect to these sockets, which are closed by `stop`."""
        self._sockets = sockets
        if self._tls is not None:
            shrink_tls_buffers()
        await self._runner.setup()
        server = self._runner.server
        assert server is not None
        server.request_handler = partial(_handle, server.request_handler)
        self.port = int(self._sockets[0].getsockname()[1])
        guard = self._guard = ConnectionGuard(server, self._limits.within_descriptors(), self._tls)
        for listening in self._sockets:
            self._listen(listening, guard)

    async def stop(self) -> None:
        """Accept nobody any more, finish the requests under way, and close all connections."""
        loop = asyncio.get_running_loop()
        for listening in self._sockets:
            loop.remove_reader(listening)
            listening.close()
        for task in self._accepting:
            task.cancel()
        await self._runner.cleanup()
        if self._guard is not None:
            self._guard.abort()
        await asyncio.sleep(0)

    def _listen(self, listening: socket.socket, guard: ConnectionGuard) -> None:
        if listening.fileno() >= 0:
            asyncio.get_running_loop().add_reader(listening, self._accept, listening, guard)

    def _accept(self, listening: socket.socket, guard: ConnectionGuard) -> None:
        """Accept who is waiting; asyncio's own way to do so logs an error a thousand times without descriptors."""
        loop = asyncio.get_running_loop()
        for _ in range(ACCEPTED_AT_ONCE):
            try:
                accepted, _ = listening.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:
                self._complain(error)
                guard.make_room()
                loop.remove_reader(listening)
                loop.call_later(ACCEPT_PAUSE, self._listen, listening, guard)
                return
            accepted.setblocking(False)
            task: asyncio.Task[object] = loop.create_task(_serve(accepted, guard))
            self._accepting.add(task)
            task.add_done_callback(self._accepting.discard)

    def _complain(self, error: OSError) -> None:
        if (now := time.monotonic()) - self._told >= REST:
            self._told = now
            log.error(
                "cannot accept connections: %s; raise the limit on open files (ulimit -n)", error.strerror
            )


async def _serve(accepted: socket.socket, guard: ConnectionGuard) -> None:
    try:
        await asyncio.get_running_loop().connect_accepted_socket(guard.connection, accepted)
    except OSError:  # gone already
        accepted.close()


async def _handle(handler: _Handler, request: web.BaseRequest) -> web.StreamResponse:
    """Let the connection know when a request begins and when it ends."""
    connection = connection_of(request)
    if connection is None:
        return await handler(request)
    connection.begin(request)
    try:
        response = await handler(request)
        if connection.surplus:
            response.force_close()
        return response
    finally:
        connection.end()
