"""The scheduler's debug endpoints: consistency of the mirror, a dump of the state, stacks of all threads."""

from __future__ import annotations

import sys
import traceback

from aiohttp import web
from msgspec import json

from stromboli.scheduler.introspection import Introspection, Unavailable


class DebugEndpoints:
    """The debug endpoints of one process."""

    def __init__(self, introspection: Introspection):
        self._introspection = introspection

    def add_to(self, app: web.Application) -> None:
        app.router.add_get("/debug/consistency", self._consistency)
        app.router.add_post("/debug/dump", self._dump)
        app.router.add_get("/debug/stacks", _stacks)

    async def _consistency(self, _: web.Request) -> web.Response:
        try:
            differences = await self._introspection.consistency()
        except Unavailable as error:
            return web.json_response({"error": str(error)}, status=503)
        body = {"consistent": not differences, "differences": differences}
        return web.Response(
            body=json.encode(body), content_type="application/json", status=200 if not differences else 500
        )

    async def _dump(self, _: web.Request) -> web.Response:
        try:
            return web.json_response({"file": await self._introspection.dump()})
        except Unavailable as error:
            return web.json_response({"error": str(error)}, status=503)


async def _stacks(_: web.Request) -> web.Response:
    """What every thread is doing."""
    stacks = []
    for thread, frame in sys._current_frames().items():
        stacks.append(f"thread {thread}\n" + "".join(traceback.format_stack(frame)))
    return web.Response(text="\n".join(stacks))
