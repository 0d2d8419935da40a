"""Patches by the content type of the request."""

from __future__ import annotations

from typing import Any

from stromboli.api.patches import APPLY, JSON_PATCH, MERGE, STRATEGIC, merged
from stromboli.api.schemas.schema import Schema
from stromboli.embedded.api_status import StatusError
from stromboli.embedded.patching.document_bounds import check_document
from stromboli.embedded.patching.json_patch import json_patch
from stromboli.embedded.patching.strategic_merge import strategic_merge


def accepted_patch_types(built_in: bool) -> tuple[str, ...]:
    """The patches that a kind accepts: objects of CRDs have no merge keys, so no strategic merge."""
    return (JSON_PATCH, MERGE, STRATEGIC, APPLY) if built_in else (JSON_PATCH, MERGE, APPLY)


def check_media(media: str, built_in: bool) -> None:
    """Refuse a patch that the kind does not accept."""
    known = accepted_patch_types(built_in)
    if media not in known:
        types = ", ".join(known)
        message = f"the body of the request was in an unknown format - accepted media types include: {types}"
        raise StatusError(415, message)


def patched(document: dict[str, Any], patch: Any, media: str, schema: Schema) -> dict[str, Any]:
    """The document after a JSON patch, a merge patch or a strategic merge patch."""
    if media == JSON_PATCH:
        result = json_patch(document, patch)
    elif media == STRATEGIC:
        result = strategic_merge(document, patch, schema)
    else:
        result = merge_patch(document, patch)
    if not isinstance(result, dict):
        raise StatusError(422, "what the patch leaves is not an object")
    return result


def merge_patch(document: Any, patch: Any) -> Any:
    """The document after a merge patch of a client, which is bounded."""
    check_document(patch)
    if not isinstance(patch, dict):
        raise StatusError(400, f"a merge patch of an object is an object, not {type(patch).__name__}")
    return merged(document, patch)
