"""Requests through an HTTP proxy, made by aiohttp. Imported only where a kubeconfig names a proxy."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import asynccontextmanager, contextmanager

import aiohttp
from yarl import URL

from stromboli.kube.bounded_body import read_body
from stromboli.kube.credentials import Header
from stromboli.kube.http_connection import CONNECT_TIMEOUT, MAX_CONNECTIONS
from stromboli.kube.http_response import BadResponse, HttpResponse, ResponseTooLarge
from stromboli.kube.request import Request, RequestWithdrawn


class ProxiedConnections:
    """Does what `ConnectionPool` does, by way of a proxy, and fails with the same errors."""

    def __init__(self, server: str, server_name: str, headers: Iterable[Header], proxy: str) -> None:
        self._server = server
        self._server_name = server_name or None
        self._proxy = proxy
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=MAX_CONNECTIONS),
            headers=dict(headers),
            cookie_jar=aiohttp.DummyCookieJar(),
            read_bufsize=1024 * 1024,
        )

    async def send(
        self, request: Request, headers: Iterable[Header], context: ssl.SSLContext, max_bytes: int
    ) -> HttpResponse:
        async with self._respond(request, headers, context, None) as response:
            return await _whole(response, max_bytes)

    @asynccontextmanager
    async def stream(
        self,
        request: Request,
        headers: Iterable[Header],
        context: ssl.SSLContext,
        max_bytes: int,
        idle_timeout: float,
    ) -> AsyncIterator[HttpResponse | AsyncIterator[bytes]]:
        async with self._respond(request, headers, context, idle_timeout) as response:
            if response.status >= 300:
                yield await _whole(response, max_bytes)
                return
            try:
                yield response.content.iter_any()
            finally:  # a graceful close would wait for a server that is gone
                if response.connection is not None and response.connection.transport is not None:
                    response.connection.transport.abort()

    async def close(self) -> None:
        await self._session.close()

    @asynccontextmanager
    async def _respond(
        self,
        request: Request,
        headers: Iterable[Header],
        context: ssl.SSLContext,
        idle_timeout: float | None,
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        if not request.still_wanted():
            raise RequestWithdrawn
        with _plain_errors():
            async with self._session.request(
                request.method,
                URL(self._server + request.path, encoded=True),
                data=request.body,
                headers=tuple(headers),
                ssl=context,
                server_hostname=self._server_name,
                proxy=self._proxy,
                allow_redirects=False,
                timeout=aiohttp.ClientTimeout(
                    total=None, sock_connect=CONNECT_TIMEOUT, sock_read=idle_timeout
                ),
            ) as response:
                yield response


async def _whole(response: aiohttp.ClientResponse, max_bytes: int) -> HttpResponse:
    body = await read_body(response.content, max_bytes)
    if len(body) > max_bytes:
        response.close()
        raise ResponseTooLarge
    seconds = response.headers.get("Retry-After", "").strip()
    retry_after = float(seconds) if seconds.isdecimal() and len(seconds) < 9 else None
    return HttpResponse(response.status, body, retry_after, closes=False)


@contextmanager
def _plain_errors() -> Iterator[None]:
    """Errors of aiohttp as those of our own connections."""
    try:
        yield
    except aiohttp.ClientConnectorCertificateError as error:
        raise ssl.SSLCertVerificationError(1, str(error.certificate_error)) from None
    except aiohttp.ClientPayloadError:
        raise BadResponse("the connection broke off") from None
    except aiohttp.ClientError as error:
        raise OSError(str(error) or type(error).__name__) from None
