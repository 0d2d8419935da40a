"""A watch as a chunked HTTP response: initial or missed events first, then changes as they happen."""

from __future__ import annotations

import asyncio
import random

import msgspec
from aiohttp import web

from stromboli.daemon.guarded_connection import stream
from stromboli.embedded.api_status import StatusError
from stromboli.embedded.http.list_pages import read_selector
from stromboli.embedded.http.query_parameters import Query, read_flag, read_number
from stromboli.embedded.http.representations import WHOLE, Representation, encode_object, negotiate
from stromboli.embedded.kinds.kind import Kind
from stromboli.embedded.kinds.status_errors import bad_request, expired, too_large_version
from stromboli.embedded.rbac.policy_rules import User
from stromboli.embedded.store.object_store import Store
from stromboli.embedded.store.watch_hub import Encoder, Watch, WatchHub, bookmark, encode_whole, watch_event

_HEADERS = {"Content-Type": "application/json", "Cache-Control": "no-cache"}
LONGEST_WATCH = 3600
SHORTEST_WATCH = 1800
"""Seconds; the timeout of a watch that asks for none is chosen between."""


async def serve_watch(
    request: web.BaseRequest,
    store: Store,
    hub: WatchHub,
    kind: Kind,
    namespace: str,
    user: User,
    query: Query,
) -> web.StreamResponse:
    """Stream events until the client leaves, the timeout ends, or the client does not keep up."""
    representation = negotiate(request.headers.get("Accept", ""), query.get("includeObject", ""))
    encoder = _encoder(kind, representation)
    watch = Watch(kind, namespace, read_selector(kind, query), user.name, encoder)
    timeout: float = min(read_number(query, "timeoutSeconds") or 0, LONGEST_WATCH)
    timeout = timeout or random.uniform(SHORTEST_WATCH, LONGEST_WATCH)
    watch.bookmarks = read_flag(query, "allowWatchBookmarks")
    expiry = _queue_initial_events(store, watch, query)
    if request.transport is not None:
        watch.disconnect = request.transport.abort
    hub.add(watch)
    end = asyncio.get_running_loop().call_later(timeout, hub.time_out, watch)
    response = web.StreamResponse(headers=_HEADERS)
    try:
        await store.wait_committed()
        response.enable_chunked_encoding()
        stream(request)
        await response.prepare(request)
        if expiry is not None:
            await response.write(watch_event("ERROR", msgspec.json.encode(expiry.status())))
        while expiry is None and (lines := await watch.next_lines()):
            await response.write(lines)
        await response.write_eof()
    except ConnectionError:
        pass  # the client left
    finally:
        end.cancel()
        hub.remove(watch)
    return response


def _encoder(kind: Kind, representation: Representation) -> Encoder:
    if representation == WHOLE and not kind.storage_version:
        return encode_whole
    return lambda record, first: encode_object(kind, record, representation, first)


def _queue_initial_events(store: Store, watch: Watch, query: Query) -> StatusError | None:
    """Queue the events that precede new changes; the error if the resourceVersion is too old."""
    since, initial = read_number(query, "resourceVersion"), query.get("sendInitialEvents", "")
    if since and since > store.revision:
        raise too_large_version(since, store.revision)
    if initial and query.get("resourceVersionMatch") != "NotOlderThan":
        raise bad_request("sendInitialEvents needs resourceVersionMatch=NotOlderThan")
    if initial == "true" or (not initial and not since):
        for record in store.list(watch.kind.id, watch.namespace):
            if watch.selects(record):
                watch.push_lazily("ADDED", record)
        watch.revision = store.revision
        if initial == "true" and watch.bookmarks:
            watch.push(bookmark(watch.kind, watch.revision, initial=True))
        return None
    start = since or store.revision
    if start < store.compacted_revision:
        return expired(start, store.compacted_revision)
    watch.revision = start
    for change in store.changes_since(start, watch.kind.id):
        watch.replay(change)
    return None
