"""Server-sent events: what changed of a page, to a browser that looks at it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from typing import Any

import msgspec
from aiohttp import web

from stromboli.cli.dashboard.server.live_pages import LivePage, PageState
from stromboli.cli.dashboard.server.page_frame import digest, region
from stromboli.cli.dashboard.server.request_guard import HEADERS
from stromboli.daemon.request_connection import stream

log = logging.getLogger(__name__)

RECHECK = 30.0
"""Seconds after which it is asked again whether a viewer may still see what he is sent."""
HEARTBEAT = 15.0
"""Seconds after which a browser is told that we are still there; after 40 of silence it connects again."""
RETRY_MILLISECONDS = 3000
"""After which a browser connects again."""


async def send_updates(
    request: web.Request,
    page: LivePage,
    known: str,
    is_allowed: Callable[[], Awaitable[bool]],
    ended: asyncio.Event,
) -> web.StreamResponse:
    """Send every change of a page until its viewer leaves, has other rights, or the stream is ended.

    `known` is the digest of what he has; a browser that connects again by itself says which event it saw last.
    """
    known = request.headers.get("Last-Event-ID") or known
    kind = {"Content-Type": "text/event-stream; charset=utf-8", "X-Accel-Buffering": "no"}
    response = web.StreamResponse(headers={**HEADERS, **kind})
    await response.prepare(request)
    left = asyncio.Event()
    stream(request, left.set)
    await response.write(f"retry: {RETRY_MILLISECONDS}\n\n".encode())
    works: tuple[Coroutine[Any, Any, object], ...] = (
        _send(response, page, known),
        left.wait(),
        ended.wait(),
        _until_refused(is_allowed),
    )
    tasks = [asyncio.create_task(work) for work in works]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        for result in await asyncio.gather(*tasks, return_exceptions=True):
            if isinstance(result, Exception) and not isinstance(result, ConnectionError):
                log.error("a live page ended: %s", page.route.pattern, exc_info=result)
    return response


async def _until_refused(is_allowed: Callable[[], Awaitable[bool]]) -> None:
    while await is_allowed():
        await asyncio.sleep(RECHECK)


async def _send(response: web.StreamResponse, page: LivePage, known: str) -> None:
    shown: Mapping[str, str] | None = None
    updates = page.updates()
    coming = asyncio.ensure_future(anext(updates))
    try:
        while True:
            done, _ = await asyncio.wait({coming}, timeout=HEARTBEAT)
            if not done:
                await response.write(b"event: heartbeat\ndata:\n\n")
                continue
            state = coming.result()
            coming = asyncio.ensure_future(anext(updates))
            event_id = digest(state.lasting)
            if shown is not None or event_id != known:
                await response.write(_event(event_id, state, shown))
            shown = state.lasting
    finally:
        coming.cancel()


def _event(event_id: str, state: PageState, shown: Mapping[str, str] | None) -> bytes:
    """The regions that differ from what is shown; all of them where that is not known. Its id is what is shown then."""
    title, regions, _ = state.content
    event = {
        "title": _sendable(title),
        "order": [f"region-{name}" for name in regions],
        "changed": [
            _sendable(region(name, markup))
            for name, markup in regions.items()
            if shown is None or shown.get(name) != state.lasting[name]
        ],
    }
    return f"id: {event_id}\n".encode() + b"data: " + msgspec.json.encode(event) + b"\n\n"


def _sendable(text: str) -> str:
    """Without what is no text in UTF-8; names of objects may have it."""
    return text.encode(errors="replace").decode()
