"""Merge patches that clients send, within bounds."""

from __future__ import annotations

from typing import Any

from stromboli.api.manifests.merge_patches import merged
from stromboli.embedded.api_status import StatusError
from stromboli.embedded.patching.document_bounds import check_document


def merge_patch(document: Any, patch: Any) -> Any:
    """The document with the patch merged in; lists are replaced whole."""
    check_document(patch)
    if not isinstance(patch, dict):
        raise StatusError(400, f"a merge patch of an object is an object, not {type(patch).__name__}")
    return merged(document, patch)
