"""A look inside the scheduler over HTTP: is the mirror right, all of the state in a file, what every thread does."""

from __future__ import annotations

import sys
import traceback
from typing import Protocol

from aiohttp import web
from msgspec import json


class Unavailable(Exception):
    """Not to be had just now."""


class Inside(Protocol):
    """What there is to be looked at."""

    async def consistency(self) -> list[str]:
        """Differences between the mirror and a fresh list."""

    async def dump(self) -> str:
        """Write the whole state to a file and say where."""


class Debugging:
    """The pages of one process."""

    def __init__(self, inside: Inside):
        self._inside = inside

    def add_to(self, app: web.Application) -> None:
        app.router.add_get("/debug/consistency", self._consistency)
        app.router.add_post("/debug/dump", self._dump)
        app.router.add_get("/debug/stacks", _stacks)

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


async def _stacks(_: web.Request) -> web.Response:
    """What every thread is doing."""
    shown = []
    for thread, frame in sys._current_frames().items():
        shown.append(f"thread {thread}\n" + "".join(traceback.format_stack(frame)))
    return web.Response(text="\n".join(shown))
