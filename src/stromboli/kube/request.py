"""What the writer and the election need of a client: one request, answered, refused or lost."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Protocol

JSON = "application/json"
MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"


class Request(NamedTuple):
    """One call of the API, still on paper."""

    method: str
    path: str
    body: bytes | None = None
    content_type: str = JSON
    still: Callable[[], bool] | None = None
    """Asked once more before the request leaves: there may have been a wait for a turn, a token, a connection."""


class ApiError(Exception):
    """The API server said no: with which status, for what reason, and when to ask again."""

    def __init__(self, status: int, reason: str = "", message: str = "", retry_after: float | None = None):
        super().__init__(message or reason or f"status {status}")
        self.status = status
        self.reason = reason
        self.retry_after = retry_after


class RequestWithdrawn(Exception):
    """The request never left: meanwhile it was no longer wanted."""


class NoResponse(Exception):
    """No answer came: nobody knows whether the request was carried out."""


class Api(Protocol):
    """A way to an API server."""

    async def ask(self, request: Request, timeout: float) -> bytes:
        """The body of the answer; `ApiError` or `NoResponse` if there is none."""


def is_transient(error: Exception) -> bool:
    """Whether the same request may fare better a little later."""
    if isinstance(error, ApiError):
        return error.status in (408, 409, 425, 429) or error.status >= 500
    return isinstance(error, NoResponse)


def is_gone(error: ApiError) -> bool:
    """Whether there is no such object, or only another one of its name by now. Whatever else is refused concerns it."""
    text = str(error).lower()
    return (
        error.status == 404
        or (error.status == 409 and "uid in" in text and "precondition" in text)
        or (error.status == 422 and "metadata.uid: invalid value" in text)  # in a patch
    )
