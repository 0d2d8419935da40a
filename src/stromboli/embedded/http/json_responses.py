"""Answers of one object: what a write returns with its warnings, and errors as a Status."""

from __future__ import annotations

import msgspec
from aiohttp import web

from stromboli.embedded.api_status import StatusError
from stromboli.embedded.http.representations import JSON, WHOLE, Representation, encode_object
from stromboli.embedded.http.request_paths import RequestInfo
from stromboli.embedded.objects.object_verbs import WriteResult
from stromboli.embedded.store.records import Key, Record


def write_response(info: RequestInfo, result: WriteResult, representation: Representation) -> web.Response:
    data = result.data
    if representation != WHOLE and not info.subresource:
        record = Record(Key(info.kind.id, "", ""), 0, data)
        data = encode_object(info.kind, record, representation)
    response = json_response(data, 201 if result.created else 200)
    for warning in result.warnings[:50]:
        text = warning[:500].replace("\\", "\\\\").replace('"', '\\"')
        response.headers.add("Warning", f'299 - "{text}"')
    return response


def json_response(data: bytes, status: int = 200) -> web.Response:
    return web.Response(body=data, status=status, content_type=JSON)


def error_response(error: StatusError) -> web.Response:
    response = json_response(msgspec.json.encode(error.status()), error.code)
    if error.retry_after:
        response.headers["Retry-After"] = str(error.retry_after)
    return response
