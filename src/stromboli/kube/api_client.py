"""Requests to an API server: one session, a limit on how fast, a bound on every answer, and patience."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from typing import Any
from urllib.parse import urlencode

import aiohttp
import msgspec
from yarl import URL

from stromboli import __version__
from stromboli.kube.api_resources import Resource
from stromboli.kube.bounded_body import read_body
from stromboli.kube.cluster_access import Access
from stromboli.kube.credentials import Certificate, Identity, NoCredentials
from stromboli.kube.http_connection import CONNECT, CONNECTIONS, Wire
from stromboli.kube.http_response import BadAnswer, Overlong
from stromboli.kube.rate_limits import Backoff, RateLimiter, Sleep
from stromboli.kube.request import JSON, MERGE, ApiError, NoResponse, Request, RequestWithdrawn

LARGEST = 64 * 1024 * 1024
"""Bytes of an answer, at most."""
TIMEOUT = 30.0
ATTEMPTS = 5
QPS, BURST = 2000.0, 2000
UNLIMITED = RateLimiter(0, 0)
LARGEST_REFUSAL = 256 * 1024
HEADERS = {"Accept": JSON, "Accept-Encoding": "identity", "User-Agent": f"stromboli/{__version__}"}


Exchanged = tuple[int, bytes, float | None]
"""Status, body, and after how many seconds to come again if that was said."""


class TooLarge(ApiError):
    """The answer is larger than we are ready to hold."""


class Details(msgspec.Struct, rename="camel", gc=False):
    retry_after_seconds: float = 0


class Status(msgspec.Struct, gc=False):
    """Why an API server refuses."""

    kind: str = ""
    reason: str = ""
    message: str = ""
    code: int = 0
    details: Details | None = None


class Client:
    """A way to one API server. All of it happens on the loop that it is first used on."""

    def __init__(
        self,
        access: Access,
        limiter: RateLimiter = UNLIMITED,
        backoff: Backoff = Backoff(longest=10.0),  # noqa: B008 - frozen
        sleep: Sleep = asyncio.sleep,
    ) -> None:
        self.access = access
        self._limiter = limiter
        self._backoff = backoff
        self._sleep = sleep
        self._session: aiohttp.ClientSession | None = None
        """For streams, and for everything where a proxy lies in between."""
        self._wire: Wire | None = None
        self._tls: tuple[Certificate | None, ssl.SSLContext] | None = None

    async def __aenter__(self) -> Client:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        if self._wire is not None:
            self._wire.close()
            self._wire = None
            await asyncio.sleep(0)
        if self._session is not None:
            await self._session.close()
            self._session = None
            await asyncio.sleep(0)  # connections that were aborted close in the loop's next turn

    # -- one request

    async def ask(self, request: Request, timeout: float = TIMEOUT, largest: int = LARGEST) -> bytes:
        """Ask once: the body of the answer. `ApiError` if the server says no, `NoResponse` if nobody knows."""
        try:
            async with asyncio.timeout(timeout):
                try:
                    return await self._once(request, largest)
                except ApiError as error:
                    if error.status != 401 or not self.access.credentials.refused():
                        raise
                return await self._once(request, largest)
        except TimeoutError:
            raise NoResponse(f"{self._shown(request)}: no answer within {timeout:g} seconds") from None

    async def _once(self, request: Request, largest: int) -> bytes:
        await self._limiter.take()
        try:
            status, body, retry_after = await (
                self._proxied(request, largest) if self.access.proxy else self._direct(request, largest)
            )
        except Overlong:
            raise TooLarge(413, "TooLarge", f"{self._shown(request)}: more than {largest} bytes") from None
        if status >= 300:
            raise refusal(status, body, retry_after)
        return body

    async def _direct(self, request: Request, largest: int) -> Exchanged:
        if self._wire is None:
            self._wire = Wire(self.access.server, self.access.trust.server_name, HEADERS.items())
        with self._telling(request):
            identity = await self.access.credentials.identity()
            headers = [*identity.headers, ("Content-Type", request.content_type)]
            answer = await self._wire.ask(
                request.method,
                request.path,
                request.body,
                headers if request.body is not None else identity.headers,
                self._context(identity),
                largest,
                request.still,
            )
        return answer.status, answer.body, answer.retry_after

    async def _proxied(self, request: Request, largest: int) -> Exchanged:
        bounds = aiohttp.ClientTimeout(total=None, sock_connect=CONNECT)
        async with self._send(request, bounds) as response:
            body = await read_body(response.content, largest)
            if len(body) > largest:
                response.close()
                raise Overlong
        return response.status, body, _retry_after(response)

    @asynccontextmanager
    async def stream(self, path: str, silence: float) -> AsyncIterator[AsyncIterator[bytes]]:
        """An answer without end, in pieces as they come; `NoResponse` if it stays silent for so long."""
        request = Request("GET", path)
        await self._limiter.take()
        bounds = aiohttp.ClientTimeout(total=None, sock_connect=CONNECT, sock_read=silence)
        async with self._send(request, bounds) as response:
            if response.status >= 300:
                if response.status == 401:
                    self.access.credentials.refused()
                body = await read_body(response.content, LARGEST_REFUSAL)
                raise refusal(response.status, body, _retry_after(response))
            try:
                yield response.content.iter_any()
            finally:  # a server that is gone would never say goodbye
                if response.connection is not None and response.connection.transport is not None:
                    response.connection.transport.abort()

    @asynccontextmanager
    async def _send(
        self, request: Request, bounds: aiohttp.ClientTimeout
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        with self._telling(request):
            identity = await self.access.credentials.identity()
            if request.still is not None and not request.still():
                raise RequestWithdrawn
            headers = [*identity.headers, ("Content-Type", request.content_type)]
            async with self._opened().request(
                request.method,
                URL(self.access.server + request.path, encoded=True),
                data=request.body,
                headers=headers if request.body is not None else identity.headers,
                ssl=self._context(identity),
                server_hostname=self.access.trust.server_name or None,
                proxy=self.access.proxy or None,
                allow_redirects=False,
                timeout=bounds,
            ) as response:
                yield response

    @contextmanager
    def _telling(self, request: Request) -> Iterator[None]:
        """Whatever goes wrong with the connection is `NoResponse`."""
        try:
            yield
        except NoCredentials as error:
            raise NoResponse(str(error)) from None
        except (aiohttp.ClientConnectorCertificateError, ssl.SSLCertVerificationError) as error:
            problem = getattr(error, "certificate_error", error)
            raise NoResponse(f"{self.access.server}: not believed to be the API server: {problem}") from None
        except aiohttp.ClientPayloadError:
            raise NoResponse(f"{self._shown(request)}: the connection broke off") from None
        except (aiohttp.ClientError, OSError, BadAnswer, asyncio.IncompleteReadError) as error:
            raise NoResponse(f"{self._shown(request)}: {str(error) or type(error).__name__}"[:500]) from None

    def _opened(self) -> aiohttp.ClientSession:
        if self._session is None:
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=CONNECTIONS),
                headers=HEADERS,
                cookie_jar=aiohttp.DummyCookieJar(),
                read_bufsize=1024 * 1024,
            )
        return self._session

    def _context(self, identity: Identity) -> ssl.SSLContext:
        if self._tls is None or self._tls[0] != identity.certificate:
            self._tls = identity.certificate, self.access.trust.context(identity.certificate)
        return self._tls[1]

    def _shown(self, request: Request) -> str:
        return f"{request.method} {self.access.server}{request.path.partition('?')[0]}"

    # -- requests that are worth repeating

    async def insist(
        self,
        request: Request,
        timeout: float = TIMEOUT,
        attempts: int = ATTEMPTS,
        largest: int = LARGEST,
    ) -> bytes:
        """Ask until there is an answer, with growing pauses, as often as that can help and do no harm."""
        failures = 0
        while True:
            try:
                return await self.ask(request, timeout, largest)
            except (ApiError, NoResponse) as error:
                failures += 1
                if failures >= attempts or not _again(request, error):
                    raise
                asked = error.retry_after if isinstance(error, ApiError) else None
                await self._sleep(self._backoff.pause(failures, asked))

    async def get(self, resource: Resource, name: str, namespace: str = "") -> bytes:
        return await self.insist(Request("GET", resource.path(namespace, name)))

    async def list(self, resource: Resource, namespace: str = "", **query: str | int) -> bytes:
        """One page: `limit`, `continue`, `labelSelector` and so on go into the query (`continue_` too)."""
        return await self.insist(Request("GET", with_query(resource.path(namespace), query)))

    async def create(self, resource: Resource, body: Any, namespace: str = "") -> bytes:
        return await self.insist(Request("POST", resource.path(namespace), _encoded(body)))

    async def post(
        self, resource: Resource, name: str, subresource: str, body: Any, namespace: str = ""
    ) -> bytes:
        path = resource.path(namespace, name, subresource)
        return await self.insist(Request("POST", path, _encoded(body)))

    async def patch(
        self,
        resource: Resource,
        name: str,
        patch: Any,
        namespace: str = "",
        subresource: str = "",
        content_type: str = MERGE,
    ) -> bytes:
        path = resource.path(namespace, name, subresource)
        return await self.insist(Request("PATCH", path, _encoded(patch), content_type))

    async def delete(self, resource: Resource, name: str, namespace: str = "", options: Any = None) -> bytes:
        body = None if options is None else _encoded(options)
        return await self.insist(Request("DELETE", resource.path(namespace, name), body))


def with_query(path: str, query: Mapping[str, str | int]) -> str:
    """A path with what was asked for; what is empty was not."""
    given = {key.rstrip("_"): value for key, value in query.items() if value != ""}
    return f"{path}?{urlencode(given)}" if given else path


def refusal(status: int, body: bytes, retry_after: float | None = None) -> ApiError:
    """What the server said, as far as it said anything."""
    try:
        said = msgspec.json.decode(body, type=Status)
    except (ValueError, RecursionError):
        said = Status(message=body[:200].decode(errors="replace").strip())
    if retry_after is None and said.details is not None and said.details.retry_after_seconds > 0:
        retry_after = said.details.retry_after_seconds
    return ApiError(status, said.reason[:100], said.message[:2000] or f"status {status}", retry_after)


def _retry_after(response: aiohttp.ClientResponse) -> float | None:
    seconds = response.headers.get("Retry-After", "").strip()
    return float(seconds) if seconds.isdecimal() and len(seconds) < 9 else None


def _again(request: Request, error: ApiError | NoResponse) -> bool:
    """Whether to ask once more: what makes something new must not be asked for twice."""
    if isinstance(error, TooLarge):
        return False
    if isinstance(error, NoResponse):
        return request.method != "POST"
    if error.status >= 500:
        return request.method != "POST" or error.retry_after is not None
    return error.status in (408, 425, 429)


def _encoded(body: Any) -> bytes:
    return body if isinstance(body, bytes) else msgspec.json.encode(body)
