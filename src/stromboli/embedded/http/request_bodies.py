"""Reads and decodes request bodies: objects, replacements, patches and applied configurations."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from itertools import islice
from typing import Any

import msgspec
from aiohttp import HttpVersion11, web

from stromboli.api.errors import Unreadable
from stromboli.api.manifests.yaml_reader import documents
from stromboli.api.patches import APPLY, JSON_PATCH, MERGE, STRATEGIC
from stromboli.embedded.api_status import StatusError
from stromboli.embedded.kinds import object_schemas
from stromboli.embedded.kinds.field_managers import field_manager
from stromboli.embedded.kinds.kind import Content, Kind
from stromboli.embedded.kinds.patched_objects import check_patched
from stromboli.embedded.kinds.status_errors import bad_request
from stromboli.embedded.patching.document_bounds import check_document, check_json
from stromboli.embedded.patching.patch_request import check_media, patched
from stromboli.embedded.patching.server_side_apply import apply
from stromboli.embedded.protobuf import protobuf_reader

Change = Callable[[Content], Content]
_YAML = ("application/yaml", APPLY)
_JSON = ("", "application/json", MERGE, STRATEGIC, JSON_PATCH)
_ENCODINGS = {"gzip": 16 + zlib.MAX_WBITS, "x-gzip": 16 + zlib.MAX_WBITS, "deflate": zlib.MAX_WBITS}

LARGEST_YAML = 16 * 1024
"""Bytes of YAML that is not JSON: reading it takes up to 5 us per byte, and nobody is served meanwhile."""


async def read_body(request: web.BaseRequest) -> bytes:
    """The body as it was before `Content-Encoding`; one that is too large is not read, nor decompressed, to its end."""
    limit = request.client_max_size
    if (request.content_length or 0) > limit:
        raise _too_large(f"{request.content_length} bytes", limit)
    if "Expect" in request.headers and request.version >= HttpVersion11:
        await request.writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        request.writer.output_size = 0  # the response is yet to come
    data = await request.read()
    encoding = request.headers.get("Content-Encoding", "identity").strip().lower()
    if encoding == "identity":
        return data
    if encoding not in _ENCODINGS:
        known = ", ".join(_ENCODINGS)
        raise StatusError(415, f"Content-Encoding {encoding[:100]!r} is not supported: send {known} or none")
    try:
        plain = zlib.decompressobj(_ENCODINGS[encoding]).decompress(data, limit + 1)
    except zlib.error as error:
        raise bad_request(f"the body is no {encoding}, as Content-Encoding says: {error}") from None
    if len(plain) > limit:
        raise _too_large(f"{len(data)} bytes of {encoding} that stand for more", limit)
    return plain


def _too_large(size: str, limit: int) -> StatusError:
    return StatusError(413, f"the request is too large: {size}; at most {limit} bytes are read")


def decode_body(data: bytes, content_type: str) -> Any:
    """The decoded body of any supported media type."""
    try:
        if content_type == protobuf_reader.MEDIA:
            content = protobuf_reader.read(data)
        elif content_type in _YAML:
            content = _decode_yaml(data)
        elif content_type in _JSON:
            content = _decode_json(data)
        else:
            raise StatusError(415, f"the body of the request was in an unknown format: {content_type[:100]}")
    except (TypeError, ValueError, RecursionError, Unreadable) as error:
        raise bad_request(f"error decoding the body: {str(error)[:500]}") from None
    check_document(content, "body")
    return content


def _decode_json(data: bytes) -> Any:
    check_json(data)
    return msgspec.json.decode(data)


def _decode_yaml(data: bytes) -> Any:
    """JSON is YAML too, and what most clients send as YAML is JSON; that is decoded faster, so it may be larger."""
    if data.lstrip()[:1] in (b"{", b"["):
        try:
            return _decode_json(data)
        except (ValueError, RecursionError):
            if len(data) > LARGEST_YAML:
                raise
    if len(data) > LARGEST_YAML:
        raise StatusError(
            413,
            f"the body is {len(data)} bytes of YAML, of which at most {LARGEST_YAML} are read:"
            " send it as JSON, which kubectl does",
        )
    content = _single(list(islice(documents(data.decode()), 2)))
    check_document(content, "body")
    return msgspec.json.decode(msgspec.json.encode(content))  # keys that are numbers become texts, as in JSON


def _single(contents: list[Any]) -> Any:
    if len(contents) != 1:
        raise bad_request(f"the body must hold one document, not {len(contents) or 'none'}")
    return contents[0]


def read_replacement(data: bytes, content_type: str) -> Change:
    """An update: the body, copied for each attempt."""
    content = decode_body(data, content_type)
    return lambda _: msgspec.json.decode(msgspec.json.encode(content))


def read_object_patch(kind: Kind, data: bytes, content_type: str) -> Change:
    """The function that applies a patch to an object, whose type and identity must stay."""
    patch = read_patch(kind, data, content_type)

    def change(content: Content) -> Content:
        after = patch(content)
        check_patched(kind, content, after)
        return after

    return change


def read_patch(kind: Kind, data: bytes, content_type: str) -> Change:
    """The function that applies a patch to an object or to its Scale."""
    check_media(content_type, kind.definition is None)
    patch = decode_body(data, content_type)
    return lambda content: patched(content, patch, content_type, object_schemas.schema(kind))


def read_apply(
    kind: Kind, data: bytes, manager: str, force: bool, subresource: str
) -> Callable[[Content | None], Content]:
    """The function that applies a configuration to an object, or to None if there is none."""
    config = decode_body(data, APPLY)
    _check_fields(kind, config)
    applier = field_manager(kind, manager, subresource)
    return lambda content: apply(content, config, object_schemas.schema(kind), applier, force)


def _check_fields(kind: Kind, config: Any) -> None:
    """Each applied field gets a manager, so the schema must have it."""
    unknown = object_schemas.unknown_fields(kind, config)
    if unknown:
        meta = config.get("metadata")
        meta = meta if isinstance(meta, dict) else {}
        subject = f"{meta.get('namespace', '')}/{meta.get('name', '')}; {kind.group}/{kind.version}, Kind={kind.kind}"
        listed = ", ".join(f".{path[:200]}: field not declared in schema" for path in unknown[:20])
        raise bad_request(f"failed to create typed patch object ({subject}): {listed}")
