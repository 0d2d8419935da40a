"""What a merge patch (RFC 7386) makes of a document: values replace, null removes.

As in API servers also in objects within a list, unless the list replaces an object.
"""

from __future__ import annotations

from typing import Any


def merged(document: Any, patch: Any) -> Any:
    """The document with the patch merged in; lists are replaced whole."""
    if isinstance(patch, list) and not isinstance(document, dict):
        return [value if value is None else merged(None, value) for value in patch]
    if not isinstance(patch, dict):
        return patch
    result = dict(document) if isinstance(document, dict) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = merged(result.get(key), value)
    return result
