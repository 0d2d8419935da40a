"""The debug endpoints: consistency of the mirror, a dump of the state, stacks of all threads.

Imported after the first decisions, since aiohttp takes long to import.
"""

from __future__ import annotations

import sys
import traceback
from typing import TYPE_CHECKING

from aiohttp import web

from stromboli.daemon.delegated_authorization import DelegatedAuthorization
from stromboli.scheduler.thread_seam import Unavailable

if TYPE_CHECKING:
    from stromboli.scheduler.introspection import Introspection


def add_debug_routes(
    introspection: Introspection, authorization: DelegatedAuthorization, app: web.Application
) -> None:
    """Add the routes, for users with permission for the verb on the path: they show what the whole cluster runs."""

    async def consistency(_: web.Request) -> web.Response:
        try:
            differences = await introspection.consistency()
        except Unavailable as error:
            return web.json_response({"error": str(error)}, status=503)
        body = {"consistent": not differences, "differences": differences}
        return web.json_response(body, status=500 if differences else 200)

    async def dump(_: web.Request) -> web.Response:
        try:
            return web.json_response({"file": await introspection.dump()})
        except Unavailable as error:
            return web.json_response({"error": str(error)}, status=503)

    app.router.add_get("/debug/consistency", authorization.required(consistency))
    app.router.add_post("/debug/dump", authorization.required(dump))
    app.router.add_get("/debug/stacks", authorization.required(_stacks))


async def _stacks(_: web.Request) -> web.Response:
    """What every thread is doing."""
    stacks = [
        f"thread {thread}\n{''.join(traceback.format_stack(frame))}"
        for thread, frame in sys._current_frames().items()
    ]
    return web.Response(text="\n".join(stacks))
