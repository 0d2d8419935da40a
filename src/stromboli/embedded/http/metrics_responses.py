"""The metrics of the scheduler of an embedded cluster, in Prometheus' text format."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from aiohttp import web

from stromboli.embedded.api_status import StatusError

PATH = "/metrics/scheduler"
"""Not `/metrics`, where an API server elsewhere tells about itself."""
CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class ClusterMetrics:
    """Asks the scheduler, once it runs: an API server starts before it."""

    def __init__(self) -> None:
        self._text: Callable[[], Awaitable[bytes]] | None = None

    def connect(self, text: Callable[[], Awaitable[bytes]]) -> None:
        self._text = text

    async def respond(self) -> web.Response:
        """As the endpoint of a scheduler elsewhere answers; a `StatusError` if it does not run yet."""
        if self._text is None:
            raise StatusError(503, "the scheduler of this cluster has not started yet")
        return web.Response(body=await self._text(), headers={"Content-Type": CONTENT_TYPE})
