"""A watch as one HTTP answer without end: what is there, what was missed, then what happens."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from typing import Any

import msgspec
from aiohttp import web

from stromboli.embedded.http.list_pages import revision, selector
from stromboli.embedded.http.representations import WHOLE, Form, accepted, shown
from stromboli.embedded.kinds.kind import Kind
from stromboli.embedded.kinds.status_errors import Refusal, bad_request, expired
from stromboli.embedded.store.object_store import Store
from stromboli.embedded.store.records import Record
from stromboli.embedded.store.watch_hub import Hub, Watch, bookmark, event, plain

_HEADERS = {"Content-Type": "application/json", "Cache-Control": "no-cache"}
LONGEST = 3600
SHORTEST = 1800
"""Seconds after which a stream ends by itself, if its reader did not say; somewhere between."""


async def stream(
    request: web.BaseRequest, store: Store, hub: Hub, kind: Kind, namespace: str, query: Any
) -> web.StreamResponse:
    """Until the reader leaves, its time is over, or it does not keep up."""
    if hub.full:
        raise Refusal(429, "too many watches are open; try again later", retry_after=5)
    form = accepted(request.headers.get("Accept", ""), query.get("includeObject", ""))
    watch = Watch(kind, namespace, selector(kind, query), _form(kind, form))
    seconds = _seconds(query.get("timeoutSeconds", ""))
    bookmarks = query.get("allowWatchBookmarks", "") in ("true", "1")
    gone = _begin(store, watch, query, bookmarks)
    watch.bookmarks = bookmarks
    if request.transport is not None:
        watch.cut = request.transport.abort
    hub.join(watch)
    end = asyncio.get_running_loop().call_later(seconds, hub.finish, watch)
    response = web.StreamResponse(headers=_HEADERS)
    try:
        await store.settled()
        response.enable_chunked_encoding()
        await response.prepare(request)
        if gone is not None:
            await response.write(event("ERROR", msgspec.json.encode(gone.status())))
        while gone is None and (lines := await watch.news()):
            await response.write(lines)
        await response.write_eof()
    except ConnectionError:
        pass  # the reader left
    finally:
        end.cancel()
        hub.leave(watch)
    return response


def _form(kind: Kind, form: Form) -> Callable[[Record, bool], bytes]:
    if form == WHOLE and not kind.stored:
        return plain
    return lambda record, first: shown(kind, record, form, first)


def _seconds(text: str) -> float:
    if not text:
        return random.uniform(SHORTEST, LONGEST)
    if not text.isdecimal() or len(text) > 9:
        raise bad_request(f'timeoutSeconds: Invalid value: "{text[:100]}": must be a number')
    return min(float(text), LONGEST) or random.uniform(SHORTEST, LONGEST)


def _begin(store: Store, watch: Watch, query: Any, bookmarks: bool) -> Refusal | None:
    """Fill a stream with what comes before the next change; or why it cannot begin there."""
    since, initial = query.get("resourceVersion", ""), query.get("sendInitialEvents", "")
    if initial and query.get("resourceVersionMatch") != "NotOlderThan":
        raise bad_request("sendInitialEvents needs resourceVersionMatch=NotOlderThan")
    if initial == "true" or (not initial and since in ("", "0")):
        for record in store.all(watch.kind.id, watch.namespace):
            if watch.meant(record):
                watch.show("ADDED", record)
        watch.revision = store.revision
        if initial == "true" and bookmarks:
            watch.push(bookmark(watch.kind, watch.revision, initial=True))
        return None
    start = revision(since) if since not in ("", "0") else store.revision
    if start < store.horizon:
        return expired(start, store.horizon)
    watch.revision = start
    for change in store.since(start, watch.kind.id):
        watch.replay(change)
    return None
