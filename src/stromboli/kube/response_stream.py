"""One response that is read while it comes, such as that of a watch, over a connection of its own."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import cast

from stromboli.kube.http_response import BadResponse, HttpResponse, ResponseReader, ResponseTooLarge

MAX_UNREAD_BYTES = 1024 * 1024
"""Received and not taken yet; beyond that the connection is not read."""


class ResponseStream(asyncio.Protocol):
    """Used for one request; whoever opened it aborts it."""

    def __init__(self, max_bytes: int) -> None:
        """`max_bytes` bounds a chunk, and the body of a refusal."""
        self._max_bytes = max_bytes
        self._reader = ResponseReader(max_bytes)
        self._transport: asyncio.Transport
        self._unread = bytearray()
        self._refusal: HttpResponse | None = None
        self._ended = False
        self._error: Exception | None = None
        self._news = asyncio.Event()

    async def begin(self, request: bytes, idle_timeout: float) -> HttpResponse | None:
        """Send the request; the response if it is a refusal. `TimeoutError` after so many seconds without data."""
        self._transport.write(request)
        while self._refusal is None and not self._reader.succeeds:
            await self._wait(idle_timeout)
        return self._refusal

    async def pieces(self, idle_timeout: float) -> AsyncIterator[bytes]:
        """The body as it comes, to its end; `OSError` or `BadResponse` if the connection breaks."""
        while True:
            if self._unread:
                piece = bytes(self._unread)
                self._unread.clear()
                self._transport.resume_reading()
                yield piece
            elif self._ended:
                return
            else:
                await self._wait(idle_timeout)

    async def _wait(self, idle_timeout: float) -> None:
        if self._error is not None:
            raise self._error
        self._news.clear()
        async with asyncio.timeout(idle_timeout):
            await self._news.wait()

    def abort(self) -> None:
        """Close at once: a graceful close would wait for a server that may be gone."""
        self._transport.abort()

    # -- asyncio.Protocol

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        if self._ended or self._error is not None:
            self.abort()  # unsolicited
            return
        self._news.set()
        try:
            response = self._reader.feed(data)
        except BadResponse as error:
            self._fail(error)
            return
        except ResponseTooLarge:
            self._fail(BadResponse(f"a chunk of more than {self._max_bytes} bytes"))
            return
        if response is not None:
            self._finish(response)
        elif self._reader.succeeds:
            self._unread += self._reader.take()
            if len(self._unread) > MAX_UNREAD_BYTES:
                self._transport.pause_reading()

    def connection_lost(self, error: Exception | None) -> None:
        self._news.set()
        if self._ended or self._refusal is not None:
            return
        try:
            if error is not None:
                raise error
            self._finish(self._reader.end())
        except Exception as broken:
            self._fail(broken)

    def _finish(self, response: HttpResponse) -> None:
        if response.status >= 300:
            self._refusal = response
        self._unread += response.body
        self._ended = True

    def _fail(self, error: Exception) -> None:
        if self._error is None:
            self._error = error
