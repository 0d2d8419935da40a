"""Merge patch (RFC 7386): values replace, null removes.

In API servers also in objects within a list, unless the list replaces an object.
"""

from __future__ import annotations

from typing import Any

from stromboli.embedded.api_status import StatusError
from stromboli.embedded.patching.document_bounds import check_document


def merge_patch(document: Any, patch: Any) -> Any:
    """The document with the patch merged in; lists are replaced whole."""
    check_document(patch)
    if not isinstance(patch, dict):
        raise StatusError(400, f"a merge patch of an object is an object, not {type(patch).__name__}")
    return _merged(document, patch)


def _merged(document: Any, patch: Any) -> Any:
    if isinstance(patch, list) and not isinstance(document, dict):
        return [value if value is None else _merged(None, value) for value in patch]
    if not isinstance(patch, dict):
        return patch
    result = dict(document) if isinstance(document, dict) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = _merged(result.get(key), value)
    return result
