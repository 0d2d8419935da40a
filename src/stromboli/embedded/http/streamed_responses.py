"""Responses that are sent piece by piece, so that a client that does not read holds little: watches and long lists."""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator, Iterable, Iterator

from aiohttp import HttpVersion11, web

from stromboli.embedded.http.json_responses import json_response
from stromboli.embedded.http.list_pages import Page
from stromboli.embedded.http.representations import JSON, Representation, encode_list
from stromboli.embedded.kinds.kind import Kind
from stromboli.embedded.store.watch import LARGEST_WRITE, Turns
from stromboli.embedded.store.watch_buffers import Line, Reader, WatchBuffers

SEND_BUFFER = 128 * 1024
"""Bytes of a watch that the system keeps for a client that does not read; by itself it would take megabytes."""


async def send_stream(
    request: web.BaseRequest, reader: Reader, pieces: AsyncIterator[bytes]
) -> web.StreamResponse:
    """Send a body without an end of its own, each piece once the client has read nearly all that came before."""
    response = web.StreamResponse(headers={"Content-Type": JSON, "Cache-Control": "no-cache"})
    if request.version >= HttpVersion11:  # for an older client the body ends with the connection
        response.enable_chunked_encoding()
    _connect(request, reader)
    limit_send_buffer(request)
    try:
        await response.prepare(request)
        async for piece in pieces:
            await response.write(piece)
            await request.writer.drain()
        await response.write_eof()
    except ConnectionError:
        pass  # the client left, or was cut off
    return response


def limit_send_buffer(request: web.BaseRequest) -> None:
    """Let the system keep little that the client has not read; a client of TLS that has left has no socket."""
    raw = request.transport.get_extra_info("socket") if request.transport is not None else None
    if raw is not None:
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER)


def _connect(request: web.BaseRequest, reader: Reader) -> None:
    """Let the connection keep little that the client has not read, and end if the reader is cut off."""
    if request.transport is not None:
        reader.disconnect = request.transport.abort
        request.transport.set_write_buffer_limits(LARGEST_WRITE)


class ListReader(Reader):
    """A client that reads a list as it was at a revision."""

    def __init__(self, user: str, revision: int):
        super().__init__(user)
        self._revision = revision

    @property
    def oldest_revision(self) -> int:
        return self._revision + 1


def list_response(
    request: web.BaseRequest,
    buffers: WatchBuffers,
    user: str,
    turns: Turns,
    kind: Kind,
    page: Page,
    form: Representation,
) -> web.Response:
    """A list: a short one whole, a long one encoded as its client reads it, part by part when it is the user's turn."""
    parts = encode_list(kind, page, form)
    if sum(len(record.data) for record in page.records) <= LARGEST_WRITE:
        return json_response(b"".join(parts))
    reader = ListReader(user, int(page.meta["resourceVersion"]))
    return web.Response(body=_sent_parts(request, buffers, reader, turns, parts), content_type=JSON)


async def _sent_parts(
    request: web.BaseRequest, buffers: WatchBuffers, reader: Reader, turns: Turns, parts: Iterable[bytes]
) -> AsyncIterator[bytes | memoryview]:
    """The parts in pieces, between which others have their turn; what was encoded and is not sent yet is counted."""
    _connect(request, reader)
    buffers.add(reader)
    try:
        joined = _joined(parts)
        while True:
            async with turns:
                part = next(joined, None)
            if part is None:
                break
            buffers.hold(reader, Line(part))
            for start in range(0, len(part), LARGEST_WRITE):
                if start:
                    async with turns:
                        pass
                buffers.advance(reader)
                yield memoryview(part)[start : start + LARGEST_WRITE]
            buffers.release(reader)
    finally:
        buffers.remove(reader)


def _joined(parts: Iterable[bytes]) -> Iterator[bytes]:
    """Small parts together."""
    small, size = list[bytes](), 0
    for part in parts:
        small.append(part)
        size += len(part)
        if size >= LARGEST_WRITE:
            yield b"".join(small)
            small, size = [], 0
    yield b"".join(small)
