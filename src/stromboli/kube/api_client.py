"""Requests to an API server, with a rate limit, bounded responses and retries."""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

import msgspec

from stromboli import __version__
from stromboli.api.patches import MERGE
from stromboli.kube.api_resources import Resource
from stromboli.kube.cluster_access import Access
from stromboli.kube.credentials import BadConfig, Certificate, Header, Identity, NoCredentials
from stromboli.kube.http_connection import (
    BadResponse,
    ConnectionPool,
    HttpResponse,
    ResponseTooLarge,
)
from stromboli.kube.request import JSON, ApiError, Backoff, NoResponse, RateLimiter, Request, Sleep, api_error

if TYPE_CHECKING:
    from stromboli.kube.aiohttp_requests import ProxiedConnections

log = logging.getLogger(__name__)

MAX_RESPONSE_BYTES = 64 * 1024 * 1024
"""Of a response, at most."""
TIMEOUT = 30.0
ATTEMPTS = 5
UNLIMITED = RateLimiter(0, 0)
NO_RESPONSE = "<error>"
"""Counted in place of a status."""
HEADERS = {"Accept": JSON, "Accept-Encoding": "identity", "User-Agent": f"stromboli/{__version__}"}
_CONNECTION_ERRORS = (NoCredentials, OSError, BadResponse, asyncio.IncompleteReadError)


class TooLarge(ApiError):
    """The response is larger than the limit."""


class Client:
    """A client of one API server; bound to the event loop it is first used on."""

    def __init__(
        self,
        access: Access,
        limiter: RateLimiter = UNLIMITED,
        backoff: Backoff = Backoff(longest=10.0),  # noqa: B008 - frozen
        sleep: Sleep = asyncio.sleep,
        count: Callable[[str, str], None] = lambda method, status: None,
    ) -> None:
        """`count` is called with method and status of every request except watches, as Go's clients count them."""
        self.access = access
        self._limiter = limiter
        self._backoff = backoff
        self._sleep = sleep
        self._count = count
        self._pool: ConnectionPool | ProxiedConnections | None = None
        self._timeouts = SharedTimeouts()
        self._tls: tuple[Certificate | None, ssl.SSLContext] | None = None

    async def __aenter__(self) -> Client:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        self._timeouts.close()
        if self._pool is not None:
            await self._pool.close()
            self._pool = None

    # -- one request

    async def send(
        self, request: Request, timeout: float = TIMEOUT, max_bytes: int = MAX_RESPONSE_BYTES
    ) -> bytes:
        """Send once and return the body. `ApiError` if the server refuses, `NoResponse` if the outcome is unknown."""
        status = NO_RESPONSE
        try:
            with self._timeouts(timeout):
                body = await self._send_authenticated(request, max_bytes)
            status = "201" if request.method == "POST" else "200"
            return body
        except ApiError as error:
            status = str(error.status)
            raise
        except TimeoutError:
            raise NoResponse(f"{self._description(request)}: no answer within {timeout:g} seconds") from None
        finally:
            self._count(request.method, status)

    async def _send_authenticated(self, request: Request, max_bytes: int) -> bytes:
        """Twice if our credentials were rejected and others may be had."""
        try:
            return await self._send_once(request, max_bytes)
        except ApiError as error:
            if error.status != 401 or not self.access.credentials.rejected():
                raise
        return await self._send_once(request, max_bytes)

    async def _send_once(self, request: Request, max_bytes: int) -> bytes:
        await self._limiter.take()
        try:
            response = await self._exchange(request, max_bytes)
        except ResponseTooLarge:
            raise TooLarge(
                413, "TooLarge", f"{self._description(request)}: more than {max_bytes} bytes"
            ) from None
        if response.status >= 300:
            raise api_error(response.status, response.body, response.retry_after)
        return response.body

    async def _exchange(self, request: Request, max_bytes: int) -> HttpResponse:
        try:
            identity = await self.access.credentials.identity()
            return await self._connections().send(
                request, _headers(request, identity), self._ssl_context(identity), max_bytes
            )
        except _CONNECTION_ERRORS as error:
            raise self._no_response(request, error) from None

    @asynccontextmanager
    async def stream(self, path: str, idle_timeout: float) -> AsyncIterator[AsyncIterator[bytes]]:
        """An endless response, in pieces as they come; `NoResponse` after `idle_timeout` seconds without any."""
        request = Request("GET", path)
        await self._limiter.take()
        try:
            identity = await self.access.credentials.identity()
            headers, context = _headers(request, identity), self._ssl_context(identity)
            async with self._connections().stream(
                request, headers, context, MAX_RESPONSE_BYTES, idle_timeout
            ) as response:
                if isinstance(response, HttpResponse):
                    if response.status == 401:
                        self.access.credentials.rejected()
                    raise api_error(response.status, response.body, response.retry_after)
                yield response
        except _CONNECTION_ERRORS as error:
            raise self._no_response(request, error) from None

    def _connections(self) -> ConnectionPool | ProxiedConnections:
        if self._pool is None:
            server, name = self.access.server, self.access.trust.server_name
            if self.access.proxy:
                from stromboli.kube.aiohttp_requests import ProxiedConnections

                self._pool = ProxiedConnections(server, name, HEADERS.items(), self.access.proxy)
            else:
                self._pool = ConnectionPool(server, name, HEADERS.items())
        return self._pool

    def _no_response(self, request: Request, error: Exception) -> NoResponse:
        """Whatever went wrong with the connection."""
        if isinstance(error, NoCredentials):
            return NoResponse(str(error))
        if isinstance(error, ssl.SSLCertVerificationError):
            return NoResponse(f"{self.access.server}: not believed to be the API server: {error}")
        if isinstance(error, TimeoutError):
            return NoResponse(f"{self._description(request)}: no data came in time")
        return NoResponse(f"{self._description(request)}: {str(error) or type(error).__name__}"[:500])

    def _ssl_context(self, identity: Identity) -> ssl.SSLContext:
        """With our certificate. If that cannot be used, as only a half of its files is renewed, the last one stays."""
        if self._tls is None or self._tls[0] != identity.certificate:
            try:
                context = self.access.trust.context(identity.certificate)
            except BadConfig as error:
                if self._tls is None:
                    raise NoCredentials(str(error)) from None
                log.warning("%s; the last one stays in use", error)
                context = self._tls[1]
            self._tls = identity.certificate, context
        return self._tls[1]

    def _description(self, request: Request) -> str:
        return f"{request.method} {self.access.server}{request.path.partition('?')[0]}"

    # -- with retries

    async def send_with_retries(self, request: Request) -> bytes:
        """Send until it succeeds, with backoff, as long as repeating it can help and does no harm."""
        failures = 0
        while True:
            try:
                return await self.send(request)
            except (ApiError, NoResponse) as error:
                failures += 1
                if failures >= ATTEMPTS or not _is_retriable(request, error):
                    raise
                retry_after = error.retry_after if isinstance(error, ApiError) else None
                await self._sleep(self._backoff.pause(failures, retry_after))

    async def get(self, resource: Resource, name: str, namespace: str = "") -> bytes:
        return await self.send_with_retries(Request("GET", resource.path(namespace, name)))

    async def list(self, resource: Resource, namespace: str = "", **query: str | int) -> bytes:
        """One page: `limit`, `continue`, `labelSelector` and so on go into the query."""
        return await self.send_with_retries(Request("GET", with_query(resource.path(namespace), query)))

    async def create(
        self, resource: Resource, body: Any, namespace: str = "", name: str = "", subresource: str = ""
    ) -> bytes:
        """An object, or with `name` a subresource of it, such as a binding."""
        path = resource.path(namespace, name, subresource)
        return await self.send_with_retries(Request("POST", path, msgspec.json.encode(body)))

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
        return await self.send_with_retries(Request("PATCH", path, msgspec.json.encode(patch), content_type))

    async def delete(self, resource: Resource, name: str, namespace: str = "", options: Any = None) -> bytes:
        body = None if options is None else msgspec.json.encode(options)
        return await self.send_with_retries(Request("DELETE", resource.path(namespace, name), body))


def _headers(request: Request, identity: Identity) -> tuple[Header, ...]:
    content = () if request.body is None else (("Content-Type", request.content_type),)
    return (*identity.headers, *content)


def with_query(path: str, query: Mapping[str, str | int]) -> str:
    """A path with its query; empty values are left out."""
    given = {key: value for key, value in query.items() if value != ""}
    return f"{path}?{urlencode(given)}" if given else path


def _is_retriable(request: Request, error: ApiError | NoResponse) -> bool:
    """Whether to send it again: a create may have succeeded although no response came."""
    if isinstance(error, TooLarge):
        return False
    if isinstance(error, NoResponse):
        return request.method != "POST"
    if error.status >= 500:
        return request.method != "POST" or error.retry_after is not None
    return error.status in (408, 425, 429)


# -- timeouts of requests


class Timeout:
    """Cancels what its block awaits when it is due, as `asyncio.timeout` does: `TimeoutError` comes out."""

    __slots__ = ("_before", "_due", "_expired", "_shared", "_task")

    def __init__(self, shared: SharedTimeouts, due: float) -> None:
        self._shared = shared
        self._due = due
        self._expired = False
        self._task: asyncio.Task[Any] | None = None
        self._before = 0

    def __enter__(self) -> None:
        self._task = asyncio.current_task()
        if self._task is not None:
            self._before = self._task.cancelling()
            self._shared.add(self, self._due)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: object) -> None:
        self._shared.remove(self)
        if self._expired and self._task is not None:
            cancelled = self._task.uncancel() <= self._before
            if cancelled and kind is not None and issubclass(kind, asyncio.CancelledError):
                raise TimeoutError from error

    def expire(self) -> None:
        self._expired = True
        if self._task is not None:
            self._task.cancel()


class SharedTimeouts:
    """Timeouts of many requests with one timer of the event loop, where each would need its own and cancel it."""

    def __init__(self) -> None:
        self._due: dict[Timeout, float] = {}
        self._timer: asyncio.TimerHandle | None = None

    def __call__(self, seconds: float) -> Timeout:
        """`with timeouts(10): ...`"""
        return Timeout(self, asyncio.get_running_loop().time() + seconds)

    def add(self, timeout: Timeout, due: float) -> None:
        self._due[timeout] = due
        if self._timer is None or due < self._timer.when():
            self._rearm(due)

    def remove(self, timeout: Timeout) -> None:
        """The timer goes on: it finds nothing, or sets itself to the next one."""
        self._due.pop(timeout, None)

    def _rearm(self, due: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = asyncio.get_running_loop().call_at(due, self._expire)

    def _expire(self) -> None:
        self._timer = None
        now = asyncio.get_running_loop().time()
        for timeout in sorted(self._due, key=self._due.__getitem__):
            if self._due[timeout] > now:
                break
            del self._due[timeout]
            timeout.expire()
        if self._due:
            self._rearm(min(self._due.values()))

    def close(self) -> None:
        """End the timer, which would keep the last block alive until it is due."""
        if self._timer is not None and not self._due:
            self._timer.cancel()
            self._timer = None
