"""One review: what an API server asks, and what it is told."""

from __future__ import annotations

import base64
from collections.abc import Awaitable, Callable
from typing import Any, Protocol

import msgspec
from aiohttp import web

from stromboli.admission.json_patch_diff import difference
from stromboli.admission.rules.admission_table import Review, complete, judge
from stromboli.admission.rules.rule_context import Context

LARGEST = 3 * 1024 * 1024


class Reviewed(msgspec.Struct, gc=False):
    """The resource that a request is about."""

    group: str = ""
    version: str = ""
    resource: str = ""


class Request(msgspec.Struct, rename="camel", gc=False):
    """What is asked."""

    uid: str
    operation: str = ""
    resource: Reviewed = msgspec.field(default_factory=Reviewed)
    namespace: str = ""
    object: Any = None
    old_object: Any = None


class Asked(msgspec.Struct, rename="camel", gc=False):
    request: Request
    api_version: str = ""


class Surroundings(Protocol):
    """Knows what the rules may know besides the object."""

    async def around(self, review: Review, request: Request) -> Context: ...


_read = msgspec.json.Decoder(Asked).decode


def handler(review: Review, surroundings: Surroundings) -> Callable[[web.Request], Awaitable[web.Response]]:
    """Answers the API server for one endpoint."""

    async def answer(http: web.Request) -> web.Response:
        if http.content_type != "application/json":
            return web.Response(status=415, text="send application/json")
        try:
            asked = _read(await http.read())
        except web.HTTPRequestEntityTooLarge:
            return web.Response(status=413, text="request body too large")
        except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
            return web.Response(status=400, text=f"not an AdmissionReview: {error}")
        response = await respond(review, asked.request, surroundings)
        body = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response}
        return web.Response(body=msgspec.json.encode(body), content_type="application/json")

    return answer


async def respond(review: Review, request: Request, surroundings: Surroundings) -> dict[str, Any]:
    """Allowed, allowed with a patch, or refused with all reasons."""
    refusal = _misdirected(review, request)
    if refusal:
        return _refused(request, refusal)
    context = await surroundings.around(review, request)
    try:
        if review.default is not None and isinstance(request.object, dict):
            patch = difference(request.object, complete(review, request.object, context))
            return _allowed(request, patch)
        thing = request.old_object if request.operation == "DELETE" else request.object
        report = judge(review, thing, request.old_object, request.operation, context)
    except RecursionError:
        return _refused(request, "nested too deeply to be read")
    return _refused(request, str(report)) if report else _allowed(request, [])


def _misdirected(review: Review, request: Request) -> str:
    found, wanted = request.resource, review.resource
    if (found.group, found.version, found.resource) != (wanted.group, wanted.version, wanted.plural):
        return f"expect resource to be {wanted}"
    if request.operation not in review.operations:
        return "expect operation to be " + " or ".join(f"'{one}'" for one in review.operations)
    return ""


def _allowed(request: Request, patch: list[dict[str, Any]]) -> dict[str, Any]:
    if not patch:
        return {"uid": request.uid, "allowed": True}
    encoded = base64.b64encode(msgspec.json.encode(patch)).decode()
    return {"uid": request.uid, "allowed": True, "patchType": "JSONPatch", "patch": encoded}


def _refused(request: Request, message: str) -> dict[str, Any]:
    return {"uid": request.uid, "allowed": False, "status": {"message": message}}
