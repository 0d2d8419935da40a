"""One request to an API server: how it may fail, when it may be sent, and when it is sent again."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import msgspec

JSON = "application/json"
GUARDED_TIMEOUT = 10.0
Clock = Callable[[], float]
Sleep = Callable[[float], Awaitable[None]]
Jitter = Callable[[], float]
"""A number from 0 to 1."""


class Request(NamedTuple):
    """One call of the API."""

    method: str
    path: str
    body: bytes | None = None
    content_type: str = JSON
    still_wanted: Callable[[], bool] = lambda: True
    """Checked right before the request is sent, as it may have waited for the rate limit or a connection."""


class ApiError(Exception):
    """The API server refused: with which status, for what reason, and when to try again."""

    def __init__(self, status: int, reason: str = "", message: str = "", retry_after: float | None = None):
        super().__init__(message or reason or f"status {status}")
        self.status = status
        self.reason = reason
        self.retry_after = retry_after


class StatusDetails(msgspec.Struct, rename="camel", gc=False):
    retry_after_seconds: float = 0


class Status(msgspec.Struct, gc=False):
    """A `metav1.Status`: why an API server refuses."""

    kind: str = ""
    reason: str = ""
    message: str = ""
    code: int = 0
    details: StatusDetails | None = None


_TOO_LARGE = ("etcdserver: request is too large", "message larger than max")
"""Messages of status 500 when etcd, or the connection to it, refuses an object of that size."""


def api_error(status: int, body: bytes, retry_after: float | None = None) -> ApiError:
    """The error in a response, as far as its body can be read; an object that is too large is always a 413."""
    try:
        refusal = msgspec.json.decode(body, type=Status)
    except (ValueError, RecursionError):
        refusal = Status(message=body[:200].decode(errors="replace").strip())
    if retry_after is None and refusal.details is not None and refusal.details.retry_after_seconds > 0:
        retry_after = refusal.details.retry_after_seconds
    if status >= 500 and any(text in refusal.message for text in _TOO_LARGE):
        status, retry_after = 413, None
    return ApiError(status, refusal.reason[:100], refusal.message[:2000] or f"status {status}", retry_after)


class RequestWithdrawn(Exception):
    """The request was not sent: it was no longer wanted."""


class NoResponse(Exception):
    """No response came: it is unknown whether the request was carried out."""


class Api(Protocol):
    """A client of an API server."""

    async def send(self, request: Request, timeout: float) -> bytes:
        """The body of the response; raises `ApiError` or `NoResponse`."""


def is_transient(error: Exception) -> bool:
    """Whether the same request may succeed a little later."""
    if isinstance(error, ApiError):
        return error.status in (408, 409, 425, 429) or error.status >= 500
    return isinstance(error, NoResponse)


def is_gone(error: ApiError) -> bool:
    """Whether the object no longer exists, or only another one with its name (and another uid)."""
    text = str(error).lower()
    return (
        error.status == 404
        or (error.status == 409 and "uid in" in text and "precondition" in text)
        or (error.status == 422 and "metadata.uid: invalid value" in text)  # in a patch
    )


# -- requests of a leader


class LeaseLost(Exception):
    """The request was not sent, as another replica may lead."""


class GuardedClient:
    """Sends requests while this replica leads, each with a timeout before which no other replica can lead."""

    def __init__(self, api: Api, write_time_left: Callable[[], float]):
        """`write_time_left`: the seconds for which certainly no other replica leads, zero if we must not write."""
        self._api = api
        self._write_time_left = write_time_left

    def may_write(self) -> bool:
        return self._write_time_left() > 0

    async def send(self, request: Request, timeout: float = GUARDED_TIMEOUT) -> bytes:
        try:
            if (left := self._write_time_left()) > 0:
                guarded = Request(
                    request.method, request.path, request.body, request.content_type, self.may_write
                )
                return await self._api.send(guarded, min(timeout, left))
        except RequestWithdrawn:
            pass
        raise LeaseLost(f"{request.method} {request.path}: not sent, the lease is lost")


# -- how often requests are sent, and when again


class RateLimiter:
    """A token bucket: `qps` requests a second, with bursts of `burst`; first come, first served."""

    def __init__(
        self, qps: float, burst: int, clock: Clock = time.monotonic, sleep: Sleep = asyncio.sleep
    ) -> None:
        """Without a positive `qps` there is no limit."""
        self._interval = 1.0 / qps if qps > 0 else 0.0
        self._slack = self._interval * max(0, burst - 1)
        self._clock = clock
        self._sleep = sleep
        self._due = clock()
        """When the next request is due if requests are evenly spaced."""

    async def take(self) -> None:
        """Wait for a token; a cancelled wait gives it back."""
        if not self._interval:
            return
        now = self._clock()
        due = max(self._due, now)
        self._due = due + self._interval
        wait = due - self._slack - now
        if wait > 0:
            try:
                await self._sleep(wait)
            except asyncio.CancelledError:
                self._due -= self._interval
                raise


@dataclass(frozen=True, slots=True)
class Backoff:
    """Pauses that double from `first` to `longest`, each shortened by up to half at random."""

    first: float = 0.25
    longest: float = 30.0
    jitter: Jitter = random.random

    def pause(self, failures: int, retry_after: float | None = None) -> float:
        """Seconds to wait after so many failures in a row; at least `retry_after`, within bounds."""
        full = min(self.longest, self.first * 2.0 ** min(max(failures, 1) - 1, 40))
        pause = full * (0.5 + 0.5 * self.jitter())
        return pause if retry_after is None else max(pause, min(retry_after, 2 * self.longest))
