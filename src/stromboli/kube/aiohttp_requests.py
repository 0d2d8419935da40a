"""Requests for which we need aiohttp: through an HTTP proxy, and to a port of a pod.

Imported only where it is needed, as aiohttp takes long to import.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING

import aiohttp
from yarl import URL

from stromboli.api.types.pod import Pod
from stromboli.kube.api_resources import RESOURCES
from stromboli.kube.credentials import BadConfig, Header, NoCredentials
from stromboli.kube.http_connection import (
    CONNECT_TIMEOUT,
    MAX_CONNECTIONS,
    BadResponse,
    HttpResponse,
    ResponseReader,
    ResponseTooLarge,
)
from stromboli.kube.request import ApiError, NoResponse, Request, RequestWithdrawn

if TYPE_CHECKING:
    from stromboli.kube.api_client import Client

# -- through a proxy


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


# -- a request to a port of a pod, through the API server, as `kubectl port-forward` makes connections


# The port is forwarded on channels of a WebSocket: the first carries data, the second an error, and each begins with
# the number of the port.
PROTOCOL = "v4.channel.k8s.io"
DATA, ERROR = 0, 1
MAX_ERROR = 2000
"""Bytes of what a kubelet says about a port that cannot be reached."""


async def get_from_pod(
    client: Client,
    namespace: str,
    pod: str,
    port: int,
    path: str,
    headers: Iterable[Header],
    timeout: float,
    max_bytes: int,
) -> HttpResponse:
    """The response to a GET. `ApiError` if the API server refuses to forward, `NoResponse` if none comes."""
    lines = [f"GET {path} HTTP/1.1", "Host: localhost", "Accept: application/json", "Connection: close"]
    lines += [f"{name}: {value}" for name, value in headers]
    if not all(line.isascii() and line.isprintable() for line in lines):
        raise NoResponse("the request cannot be sent: it has characters that no header may have")
    request = ("\r\n".join(lines) + "\r\n\r\n").encode()
    try:
        async with asyncio.timeout(timeout):
            return await _exchange(client, namespace, pod, port, request, max_bytes)
    except TimeoutError:
        raise NoResponse(f"port {port} of pod {pod}: no answer within {timeout:g} seconds") from None
    except aiohttp.WSServerHandshakeError as error:
        if error.status == 403:
            message = f'no right to get and create resource "pods/portforward" in the namespace "{namespace}"'
            raise ApiError(403, "Forbidden", message) from None
        raise ApiError(
            error.status, "", f"port {port} of pod {pod} is not forwarded: {error.message}"
        ) from None
    except ResponseTooLarge:
        raise NoResponse(f"port {port} of pod {pod}: more than {max_bytes} bytes") from None
    except (aiohttp.ClientError, OSError, BadResponse, NoCredentials, BadConfig) as error:
        raise NoResponse(f"port {port} of pod {pod}: {str(error) or type(error).__name__}") from None


async def _exchange(
    client: Client, namespace: str, pod: str, port: int, request: bytes, max_bytes: int
) -> HttpResponse:
    access = client.access
    identity = await access.credentials.identity()
    url = URL(
        f"{access.server}{RESOURCES[Pod].path(namespace, pod, 'portforward')}?ports={port}", encoded=True
    )
    async with (
        aiohttp.ClientSession(cookie_jar=aiohttp.DummyCookieJar()) as session,
        session.ws_connect(
            url,
            protocols=(PROTOCOL,),
            headers=tuple(identity.headers),
            ssl=access.trust.context(identity.certificate),
            server_hostname=access.trust.server_name or None,
            proxy=access.proxy or None,
            max_msg_size=max_bytes + 64 * 1024,
            timeout=aiohttp.ClientWSTimeout(ws_close=1.0),
        ) as socket,
    ):
        await socket.send_bytes(bytes((DATA,)) + request)
        return await _read(socket, port, ResponseReader(max_bytes))


async def _read(socket: aiohttp.ClientWebSocketResponse, port: int, reader: ResponseReader) -> HttpResponse:
    begun: set[int] = set()
    while True:
        message = await socket.receive()
        if message.type is not aiohttp.WSMsgType.BINARY:
            return reader.end()
        if not message.data:
            continue
        channel, data = message.data[0], message.data[1:]
        if channel not in begun:  # the number of the port, in a message of its own or before the data
            begun.add(channel)
            data = data[2:]
        if channel == ERROR and data:
            text = data[:MAX_ERROR].decode(errors="replace")
            raise NoResponse(f"port {port} cannot be reached: {text}")
        if channel == DATA and data and (response := reader.feed(data)) is not None:
            return response


async def read_body(stream: aiohttp.StreamReader, limit: int) -> bytes:
    """Read a body to its end; of one that is longer than `limit`, return no more than shows that.

    `StreamReader.read(n)` alone returns whatever has arrived so far.
    """
    body = bytearray()
    while len(body) <= limit and (chunk := await stream.readany()):
        body += chunk
    return bytes(body)
