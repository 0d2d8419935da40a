"""Patches by the content type of the request."""

from __future__ import annotations

from typing import Any

from stromboli.api.schemas.schema import Schema
from stromboli.embedded.api_status import StatusError
from stromboli.embedded.patching.json_patch import json_patch
from stromboli.embedded.patching.merge_patch import merge_patch
from stromboli.embedded.patching.strategic_merge import strategic_merge

JSON = "application/json-patch+json"
MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
APPLY = "application/apply-patch+yaml"
"""Its body is a configuration: see `server_side_apply.apply`."""


def accepted_patch_types(built_in: bool) -> tuple[str, ...]:
    """The patches that a kind accepts: objects of CRDs have no merge keys, so no strategic merge."""
    return (JSON, MERGE, STRATEGIC, APPLY) if built_in else (JSON, MERGE, APPLY)


def check_media(media: str, built_in: bool) -> None:
    """Refuse a patch that the kind does not accept."""
    known = accepted_patch_types(built_in)
    if media not in known:
        types = ", ".join(known)
        message = f"the body of the request was in an unknown format - accepted media types include: {types}"
        raise StatusError(415, message)


def patched(document: dict[str, Any], patch: Any, media: str, schema: Schema) -> dict[str, Any]:
    """The document after a JSON patch, a merge patch or a strategic merge patch."""
    if media == JSON:
        result = json_patch(document, patch)
    elif media == STRATEGIC:
        result = strategic_merge(document, patch, schema)
    else:
        result = merge_patch(document, patch)
    if not isinstance(result, dict):
        raise StatusError(422, "what the patch leaves is not an object")
    return result
