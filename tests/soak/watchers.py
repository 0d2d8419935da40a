"""A user who may only look, and takes what can be had: watches that are read slowly or never, half requests."""

from __future__ import annotations

import asyncio
import random
import ssl
import time
from collections import Counter
from contextlib import suppress

from tests.soak.cluster_process import ClusterProcess
from tests.soak.limits import Load
from tests.soak.workloads import CONFIG_MAPS, CORE, JOBS

TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
PATHS = (CONFIG_MAPS, "/api/v1/configmaps", CONFIG_MAPS, f"{CORE}/pods", JOBS)
UNREAD_BUFFER = 1024
"""Bytes that the client takes from its socket before it stops reading."""
SLOW_READ = 16 * 1024
"""Bytes a second."""
HOLD = 12.0
"""Seconds, more or less, until a client gives up its connection: who does not read is not told of its end."""
PAUSE = 2.0
"""Seconds until a client that was cut off or refused comes again."""


class GreedyClients:
    """Raw connections, opened again whenever they are cut off."""

    def __init__(self, cluster: ClusterProcess, up: asyncio.Event, token: str) -> None:
        self._cluster = cluster
        self._up = up
        self._token = token
        self._trust: ssl.SSLContext = cluster.trust()
        self.opened: Counter[str] = Counter()

    async def run(self, load: Load) -> None:
        async with asyncio.TaskGroup() as group:
            for number in range(load.unread_watches):
                group.create_task(self._repeat("unread", self._watch(number)))
            for number in range(load.slow_watches):
                group.create_task(self._repeat("slow", self._watch(number)))
            for _ in range(load.half_requests):
                group.create_task(self._repeat("half", b"GET /readyz HTTP/1.1\r\nHost: cluster\r\nX-A"))

    def _watch(self, number: int) -> bytes:
        path, table = PATHS[number // 2 % len(PATHS)], number % 2
        accept = f"{TABLE},application/json" if table else "application/json"
        query = "watch=true&includeObject=Object" if table else "watch=true"
        return (
            f"GET {path}?{query} HTTP/1.1\r\nHost: cluster\r\nAuthorization: Bearer {self._token}\r\n"
            f"Accept: {accept}\r\n\r\n"
        ).encode()

    async def _repeat(self, sort: str, request: bytes) -> None:
        while True:
            await self._up.wait()
            with suppress(OSError, EOFError):
                await self._hold(sort, request)
            await asyncio.sleep(PAUSE)

    async def _hold(self, sort: str, request: bytes) -> None:
        """Send, and keep the connection for a while, unless the server or a kill ends it."""
        host, port = self._cluster.address
        limit = SLOW_READ if sort == "slow" else UNREAD_BUFFER
        reader, writer = await asyncio.open_connection(host, port, ssl=self._trust, limit=limit)
        self.opened[sort] += 1
        end = time.monotonic() + random.uniform(0.5, 1.5) * HOLD
        try:
            writer.write(request)
            await writer.drain()
            while time.monotonic() < end and not reader.at_eof() and self._up.is_set():
                if sort == "slow" and not await reader.read(SLOW_READ):
                    return
                await asyncio.sleep(1)
        finally:
            writer.transport.abort()
