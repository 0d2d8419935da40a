"""One request to an API server, and how it may fail."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Protocol

import msgspec

JSON = "application/json"
MERGE = "application/merge-patch+json"
JSON_PATCH = "application/json-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"


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
"""What API servers answer with 500 when etcd, or the connection to it, does not take an object of that size."""


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
