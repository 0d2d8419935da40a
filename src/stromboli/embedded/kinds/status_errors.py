"""Failed requests: Status objects as every Kubernetes client expects them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from stromboli.embedded.kinds.kind import Kind

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
    422: "Invalid",
    429: "TooManyRequests",
    500: "InternalError",
    503: "ServiceUnavailable",
    504: "Timeout",
}

Cause = dict[str, str]


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
            "message": self.message,
            "reason": self.reason,
        }
        details = dict(self.details or {})
        if self.retry_after:
            details["retryAfterSeconds"] = self.retry_after
        if details or self.details is not None:
            status["details"] = details
        status["code"] = self.code
        return status


def success(kind: Kind, name: str, uid: str) -> dict[str, Any]:
    """The response to a deletion that removed the object."""
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Success",
        "details": {**_details(kind, name), "uid": uid},
    }


def _details(kind: Kind, name: str) -> dict[str, Any]:
    details: dict[str, Any] = {"name": name} if name else {}
    if kind.group:
        details["group"] = kind.group
    details["kind"] = kind.plural
    return details


def not_found(kind: Kind, name: str) -> StatusError:
    return StatusError(404, f'{kind.id} "{name}" not found', details=_details(kind, name))


def no_such_resource() -> StatusError:
    return StatusError(404, "the server could not find the requested resource", details={})


def already_exists(kind: Kind, name: str) -> StatusError:
    return StatusError(409, f'{kind.id} "{name}" already exists', "AlreadyExists", _details(kind, name))


MODIFIED = "the object has been modified; please apply your changes to the latest version and try again"


def conflict(kind: Kind, name: str, why: str = MODIFIED) -> StatusError:
    message = f'Operation cannot be fulfilled on {kind.id} "{name}": {why}'
    return StatusError(409, message, details=_details(kind, name))


def forbidden(kind: Kind, name: str, why: str, causes: Sequence[Cause] = ()) -> StatusError:
    subject = f'{kind.id} "{name}"' if name else kind.id
    details = _details(kind, name)
    if causes:
        details["causes"] = list(causes)
    return StatusError(403, f"{subject} is forbidden: {why}", details=details)


def bad_request(message: str) -> StatusError:
    return StatusError(400, message)


def invalid(kind: Kind, name: str, causes: Sequence[Cause]) -> StatusError:
    """Causes have `reason` (such as FieldValueRequired), `message` and `field`."""
    texts = [
        f"{entry['field']}: {entry['message']}" if entry.get("field") else entry["message"]
        for entry in causes
    ]
    listed = texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"
    qualified = f"{kind.kind}.{kind.group}" if kind.group else kind.kind
    details: dict[str, Any] = {"name": name} if name else {}
    if kind.group:
        details["group"] = kind.group
    details |= {"kind": kind.kind, "causes": list(causes)}
    return StatusError(422, f'{qualified} "{name}" is invalid: {listed}', details=details)


def cause(field: str, message: str, reason: str = "FieldValueInvalid") -> Cause:
    return {"reason": reason, "message": message, "field": field}


def required(field: str, message: str = "") -> Cause:
    return cause(field, f"Required value{': ' + message if message else ''}", "FieldValueRequired")


def expired(revision: int, oldest: int) -> StatusError:
    return StatusError(410, f"too old resource version: {revision} ({oldest})")


def method_not_allowed() -> StatusError:
    return StatusError(405, "the server does not allow this method on the requested resource", details={})


def invalid_options(kind: str, problem: Cause, group: str = "meta.k8s.io", name: str = "") -> StatusError:
    """Of options that accompany a request, such as DeleteOptions."""
    message = f'{kind}.{group} "{name}" is invalid: {problem["field"]}: {problem["message"]}'
    named = {"name": name} if name else {}
    return StatusError(422, message, details={**named, "group": group, "kind": kind, "causes": [problem]})
