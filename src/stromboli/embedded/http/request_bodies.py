"""Decodes request bodies: objects, replacements, patches and applied configurations."""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice
from typing import Any

import msgspec

from stromboli.api.errors import Unreadable
from stromboli.api.manifests.yaml_reader import documents
from stromboli.embedded.api_status import StatusError
from stromboli.embedded.kinds import object_schemas
from stromboli.embedded.kinds.field_managers import field_manager
from stromboli.embedded.kinds.kind import Content, Kind
from stromboli.embedded.kinds.patched_objects import check_patched
from stromboli.embedded.kinds.status_errors import bad_request
from stromboli.embedded.patching.document_depth import check_depth
from stromboli.embedded.patching.patch_request import APPLY, JSON, MERGE, STRATEGIC, check_media, patched
from stromboli.embedded.patching.server_side_apply import apply
from stromboli.embedded.protobuf import protobuf_reader

Change = Callable[[Content], Content]
_YAML = ("application/yaml", APPLY)


def decode_body(data: bytes, content_type: str) -> Any:
    """The decoded body of any supported media type."""
    try:
        if content_type == protobuf_reader.MEDIA:
            return protobuf_reader.read(data)
        if content_type in _YAML and not data.lstrip().startswith(b"{"):
            content = _single(list(islice(documents(data.decode()), 2)))
        elif content_type in ("", "application/json", *_YAML, MERGE, STRATEGIC, JSON):
            content = msgspec.json.decode(data)
        else:
            raise StatusError(415, f"the body of the request was in an unknown format: {content_type[:100]}")
    except (ValueError, RecursionError, Unreadable) as error:
        raise bad_request(f"error decoding the body: {str(error)[:500]}") from None
    check_depth(content, "body")
    return content


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
        listed = ", ".join(f".{path}: field not declared in schema" for path in unknown[:20])
        raise bad_request(f"failed to create typed patch object ({subject}): {listed}")
