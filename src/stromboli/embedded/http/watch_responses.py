"""A watch as a chunked HTTP response: initial or missed events first, then changes as they happen."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator

import msgspec
from aiohttp import web

from stromboli.daemon.request_connection import finish, stream
from stromboli.embedded.api_status import StatusError
from stromboli.embedded.http.list_pages import read_selector
from stromboli.embedded.http.query_parameters import Query, read_flag, read_number
from stromboli.embedded.http.representations import encoder_of, negotiate
from stromboli.embedded.http.streamed_responses import send_stream
from stromboli.embedded.http.user_shares import share_of
from stromboli.embedded.kinds.builtin.custom_resource_definition import DEFINITIONS
from stromboli.embedded.kinds.kind import Kind
from stromboli.embedded.kinds.status_errors import bad_request, expired, too_large_version
from stromboli.embedded.rbac.policy_rules import User
from stromboli.embedded.store.object_store import Store
from stromboli.embedded.store.watch import Bookmark, Turns, Watch, watch_event
from stromboli.embedded.store.watch_hub import WatchHub

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
    turns: Turns,
    query: Query,
) -> web.StreamResponse:
    """Stream events until the client leaves, the timeout ends, or the client does not keep up.

    Each part is encoded in one of the user's `turns`.
    """
    representation = negotiate(request.headers.get("Accept", ""), query.get("includeObject", ""))
    encoder = encoder_of(kind, representation)
    watch = Watch(kind, namespace, read_selector(kind, query), share_of(user).owner, encoder)
    timeout: float = min(read_number(query, "timeoutSeconds") or 0, LONGEST_WATCH)
    timeout = timeout or random.uniform(SHORTEST_WATCH, LONGEST_WATCH)
    watch.bookmarks = read_flag(query, "allowWatchBookmarks")
    hub.add(watch)
    end = asyncio.get_running_loop().call_later(timeout, _time_out, request, hub, watch)
    try:
        expiry = _queue_initial_events(store, watch, query)
        await store.wait_committed()
        stream(request, watch.leave)
        return await send_stream(request, watch, _lines(watch, turns, expiry))
    finally:
        end.cancel()
        hub.remove(watch)


def _time_out(request: web.BaseRequest, hub: WatchHub, watch: Watch) -> None:
    hub.time_out(watch)
    finish(request)


async def _lines(watch: Watch, turns: Turns, expiry: StatusError | None) -> AsyncIterator[bytes]:
    if expiry is not None:
        yield watch_event("ERROR", msgspec.json.encode(expiry.status()))
        return
    while lines := await watch.next_lines(turns):
        yield lines


def _queue_initial_events(store: Store, watch: Watch, query: Query) -> StatusError | None:
    """Queue the events that precede new changes; the error if the resourceVersion is too old."""
    since, initial = read_number(query, "resourceVersion"), query.get("sendInitialEvents", "")
    if since and since > store.revision:
        raise too_large_version(since, store.revision)
    if initial and query.get("resourceVersionMatch") != "NotOlderThan":
        raise bad_request("sendInitialEvents needs resourceVersionMatch=NotOlderThan")
    if initial == "true" or (not initial and not since):
        watch.begin(store.list(watch.kind.id, watch.namespace), store.revision)
        if initial == "true" and watch.bookmarks:
            watch.push_bookmark(Bookmark(watch.revision, initial=True))
        return None
    start = since or store.revision
    oldest = store.compacted_revision
    if watch.kind.definition is not None and (definition := store.get(DEFINITIONS, "", watch.kind.id)):
        oldest = max(oldest, definition.revision)  # earlier objects had other fields, or were of another kind
    if start < oldest:
        return expired(start, oldest)
    watch.resume(store.changes_since(start, watch.kind.id), start)
    return None
