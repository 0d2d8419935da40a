"""Failed requests: Status objects as every Kubernetes client expects them."""

from __future__ import annotations

from typing import Any

REASONS = {
    400: "BadRequest",
    401: "Unauthorized",
    403: "Forbidden",
    404: "NotFound",
    405: "MethodNotAllowed",
    406: "NotAcceptable",
    409: "Conflict",
    410: "Expired",
    413: "RequestEntityTooLarge",
    415: "UnsupportedMediaType",
    417: "ExpectationFailed",
    422: "Invalid",
    429: "TooManyRequests",
    500: "InternalError",
    503: "ServiceUnavailable",
    504: "Timeout",
}


LONGEST_MESSAGE = 32 * 1024
"""Characters of a message; names and paths that a client sent may make it longer than anybody reads."""
LONGEST_CAUSE = 1024
"""Characters of a text in the details: a cause, a field, a name."""


class StatusError(Exception):
    """A request that fails; `status()` is the response body."""

    def __init__(
        self,
        code: int,
        message: str,
        reason: str = "",
        details: dict[str, Any] | None = None,
        retry_after: int = 0,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.reason = reason or REASONS.get(code, "InternalError")
        self.details = details
        self.retry_after = retry_after

    def status(self) -> dict[str, Any]:
        status: dict[str, Any] = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": _cut(self.message, LONGEST_MESSAGE),
            "reason": self.reason,
        }
        retry = {"retryAfterSeconds": self.retry_after} if self.retry_after else {}
        if retry or self.details is not None:
            status["details"] = {**_cut_details(self.details or {}), **retry}
        status["code"] = self.code
        return status


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else f"{text[:limit]}... ({len(text)} characters)"


def _cut_details(details: Any) -> Any:
    """Texts anywhere in the details, such as names and fields."""
    if isinstance(details, str):
        return _cut(details, LONGEST_CAUSE)
    if isinstance(details, dict):
        return {key: _cut_details(value) for key, value in details.items()}
    return [_cut_details(value) for value in details] if isinstance(details, list) else details
