"""The errors of requests for objects of a kind."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from stromboli.api.schemas import schema_problems
from stromboli.api.schemas.schema_problems import Problem
from stromboli.embedded.api_status import StatusError
from stromboli.embedded.kinds.kind import Kind


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
    details = {"name": name, "group": kind.group, "kind": kind.plural}
    return {field: text for field, text in details.items() if text}


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


def forbidden(kind: Kind, name: str, why: str, problems: Sequence[Problem] = ()) -> StatusError:
    subject = f'{kind.id} "{name}"' if name else kind.id
    details = _details(kind, name)
    if problems:
        details["causes"] = [problem.cause() for problem in problems]
    return StatusError(403, f"{subject} is forbidden: {why}", details=details)


def bad_request(message: str) -> StatusError:
    return StatusError(400, message)


def invalid(kind: Kind, name: str, problems: Sequence[Problem]) -> StatusError:
    listed = str(problems[0]) if len(problems) == 1 else f"[{', '.join(map(str, problems))}]"
    qualified = f"{kind.kind}.{kind.group}" if kind.group else kind.kind
    causes = [problem.cause() for problem in problems]
    details = {**_details(kind, name), "kind": kind.kind, "causes": causes}
    return StatusError(422, f'{qualified} "{name}" is invalid: {listed}', details=details)


def version_required(kind: Kind, name: str) -> StatusError:
    """An update that does not say which version of the object it is based on."""
    problem = schema_problems.invalid("metadata.resourceVersion", 0, "must be specified for an update")
    details = {**_details(kind, name), "causes": [problem.cause()]}
    return StatusError(422, f'{kind.id} "{name}" is invalid: {problem}', details=details)


def too_large_version(revision: int, current: int) -> StatusError:
    """A resourceVersion that this server has not reached, such as one of another cluster."""
    details = {
        "causes": [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}],
        "retryAfterSeconds": 1,
    }
    message = f"Timeout: Too large resource version: {revision}, current: {current}"
    return StatusError(504, message, details=details)


def too_large_object() -> StatusError:
    return StatusError(413, "etcdserver: request is too large")


def expired(revision: int, oldest: int) -> StatusError:
    return StatusError(410, f"too old resource version: {revision} ({oldest})")


def invalid_options(kind: str, problem: Problem, group: str = "meta.k8s.io", name: str = "") -> StatusError:
    """Of options that accompany a request, such as DeleteOptions."""
    message = f'{kind}.{group} "{name}" is invalid: {problem}'
    named = {"name": name} if name else {}
    return StatusError(
        422, message, details={**named, "group": group, "kind": kind, "causes": [problem.cause()]}
    )
