"""Patches of documents: media types, what a merge patch makes of a document, and patches as differences."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

MERGE = "application/merge-patch+json"
"""RFC 7386: values replace, null removes."""
JSON_PATCH = "application/json-patch+json"
"""RFC 6902: a list of operations."""
STRATEGIC = "application/strategic-merge-patch+json"
"""A merge patch in which lists merge by the keys that the schema names."""
APPLY = "application/apply-patch+yaml"
"""A configuration for server-side apply."""

Operation = dict[str, Any]


def merged(document: Any, patch: Any) -> Any:
    """The document after a merge patch; lists are replaced whole.

    As in API servers, null also removes keys of objects within a list, unless the list replaces an object.
    """
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


def merge_patch_between(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, Any]:
    """The merge patch that turns `before` into `after`; keys that are missing in `after` become null."""
    patch: dict[str, Any] = {}
    for key in sorted(before.keys() | after.keys()):
        old, new = before.get(key), after.get(key)
        if isinstance(old, Mapping) and isinstance(new, Mapping):
            if inner := merge_patch_between(old, new):
                patch[key] = inner
        elif not _is_same(old, new):
            patch[key] = new
    return patch


def json_patch_between(before: Any, after: Any, path: str = "") -> list[Operation]:
    """The JSON patch that turns one value into another; lists of different length are replaced as a whole."""
    if isinstance(before, dict) and isinstance(after, dict):
        return _between_maps(before, after, path)
    if isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        operations: list[Operation] = []
        for index, (old, new) in enumerate(zip(before, after, strict=True)):
            operations += json_patch_between(old, new, f"{path}/{index}")
        return operations
    return [] if _is_same(before, after) else [{"op": "replace", "path": path, "value": after}]


def _between_maps(before: dict[str, Any], after: dict[str, Any], path: str) -> list[Operation]:
    operations: list[Operation] = []
    for key in before:
        if key not in after:
            operations.append({"op": "remove", "path": f"{path}/{_escaped(key)}"})
    for key, value in after.items():
        where = f"{path}/{_escaped(key)}"
        if key in before:
            operations += json_patch_between(before[key], value, where)
        else:
            operations.append({"op": "add", "path": where, "value": value})
    return operations


def _escaped(key: str) -> str:
    return key.replace("~", "~0").replace("/", "~1")


def _is_same(before: Any, after: Any) -> bool:
    """Whether two values are equal; in Python, False equals 0."""
    return before == after and type(before) is type(after)
