"""Reviews of the webhook server: an AdmissionReview request in, its response out."""

from __future__ import annotations

import base64
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
from aiohttp import web

from stromboli.admission.rules.admission_table import Review, validate, with_defaults
from stromboli.admission.rules.rule_context import Context
from stromboli.api.patches import json_patch_between
from stromboli.daemon.request_connection import prove

MAX_BODY = 3 * 1024 * 1024


class GroupVersionResource(msgspec.Struct, gc=False):
    group: str = ""
    version: str = ""
    resource: str = ""


class AdmissionRequest(msgspec.Struct, rename="camel", gc=False):
    uid: str
    operation: str = ""
    resource: GroupVersionResource = msgspec.field(default_factory=GroupVersionResource)
    namespace: str = ""
    object: Any = None
    old_object: Any = None


class AdmissionReview(msgspec.Struct, rename="camel", gc=False):
    request: AdmissionRequest
    api_version: str = ""


class ContextUnknown(Exception):
    """What the rules must know could not be read; the text is for the user."""


ContextFor = Callable[[Review, AdmissionRequest], Awaitable[Context]]
"""What the rules of a review may know besides the object."""

_read = msgspec.json.Decoder(AdmissionReview).decode


def handler(review: Review, context_for: ContextFor) -> Callable[[web.Request], Awaitable[web.Response]]:
    """The HTTP handler of one endpoint."""

    async def answer(http: web.Request) -> web.Response:
        if http.content_type != "application/json":
            return web.Response(status=415, text="send application/json")
        try:
            admission_review = _read(await http.read())
        except web.HTTPRequestEntityTooLarge:
            return web.Response(status=413, text="request body too large")
        except web.RequestPayloadError as error:
            return web.Response(status=400, text=f"the body cannot be read: {error}")
        except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
            return web.Response(status=400, text=f"not an AdmissionReview: {error}")
        prove(http)
        response = await respond(review, admission_review.request, context_for)
        body = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response}
        return web.Response(body=msgspec.json.encode(body), content_type="application/json")

    return answer


async def respond(review: Review, request: AdmissionRequest, context_for: ContextFor) -> dict[str, Any]:
    """Allowed, allowed with a patch, or refused with all problems."""
    if refusal := _mismatch(review, request):
        return _refused(request, refusal)
    try:
        context = await context_for(review, request)
    except ContextUnknown as error:
        return _refused(request, str(error))
    try:
        if review.default is not None and isinstance(request.object, dict):
            completed = with_defaults(review, request.object, context, request.old_object)
            return _allowed(request, json_patch_between(request.object, completed))
        content = request.old_object if request.operation == "DELETE" else request.object
        report = validate(review, content, request.old_object, request.operation, context)
    except RecursionError:
        return _refused(request, "nested too deeply to be read")
    return _refused(request, str(report)) if report else _allowed(request, [])


def _mismatch(review: Review, request: AdmissionRequest) -> str:
    resource, expected = request.resource, review.resource
    if (resource.group, resource.version, resource.resource) != expected[:3]:
        return f"expect resource to be {expected}"
    if request.operation not in review.operations:
        return "expect operation to be " + " or ".join(f"'{operation}'" for operation in review.operations)
    return ""


def _allowed(request: AdmissionRequest, patch: list[dict[str, Any]]) -> dict[str, Any]:
    if not patch:
        return {"uid": request.uid, "allowed": True}
    encoded = base64.b64encode(msgspec.json.encode(patch)).decode()
    return {"uid": request.uid, "allowed": True, "patchType": "JSONPatch", "patch": encoded}


def _refused(request: AdmissionRequest, message: str) -> dict[str, Any]:
    return {"uid": request.uid, "allowed": False, "status": {"message": message}}
