"""Sends mutated requests, each over a connection of its own, and looks at the status of the answer."""

from __future__ import annotations

import asyncio
import ssl

from tests.soak.api_user import Outcomes
from tests.soak.cluster_process import ClusterProcess
from tests.soak.limits import Load
from tests.soak.mutations import Request, mutated_requests
from tests.soak.workloads import Pace

PATIENCE = 3.0
"""Seconds for an answer: a mutated request may promise more bytes than it sends."""
AT_ONCE = 4


class MutatingClient:
    """A user with all rights in one namespace, under a quota."""

    def __init__(
        self, cluster: ClusterProcess, outcomes: Outcomes, up: asyncio.Event, token: str, seed: int
    ) -> None:
        self._cluster = cluster
        self._outcomes = outcomes
        self._up = up
        self._token = token
        self._requests = mutated_requests(seed)
        self._trust: ssl.SSLContext = cluster.trust()

    async def run(self, load: Load) -> None:
        async with asyncio.TaskGroup() as group:
            for _ in range(AT_ONCE):
                group.create_task(self._send_all(Pace(load.mutated / AT_ONCE)))

    async def _send_all(self, pace: Pace) -> None:
        while True:
            await pace.turn()
            await self._up.wait()
            request = next(self._requests)
            try:
                async with asyncio.timeout(PATIENCE):
                    answer = await self._send(request)
            except TimeoutError:
                self._outcomes.statuses["mutated unanswered"] += 1
                continue
            except (OSError, ssl.SSLError):
                answer = b""
            self._record(request, answer)

    async def _send(self, request: Request) -> bytes:
        host, port = self._cluster.address
        reader, writer = await asyncio.open_connection(host, port, ssl=self._trust)
        try:
            writer.write(request.encode(self._token))
            await writer.drain()
            return await reader.read(4096)
        finally:
            writer.transport.abort()

    def _record(self, request: Request, answer: bytes) -> None:
        status = answer.split(b" ", 2)[1:2] if answer.startswith(b"HTTP/1.") else []
        if not status or not status[0].isdigit():
            self._outcomes.statuses["mutated closed"] += 1
            return
        if request.method == "HEAD":  # the answer has no body that says when to try again
            self._outcomes.statuses[f"mutated HEAD {int(status[0])}"] += 1
            return
        text = f"{request.method} {request.path[:300]} {request.headers} {request.body()[:1000]!r}"
        self._outcomes.record("mutated", int(status[0]), text, answer.decode(errors="replace"))
