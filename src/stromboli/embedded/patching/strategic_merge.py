"""Strategic merge patch, as kubectl uses it for built-in kinds: lists merge by the keys that the schema names.

Directives in the patch: `$patch` (replace, delete, merge) for the map it stands in, `$retainKeys` for the only keys
that stay, `$deleteFromPrimitiveList/x` for entries of list x that go, `$setElementOrder/x` for the order of the others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from stromboli.api.schemas.schema import Schema
from stromboli.embedded.api_status import StatusError
from stromboli.embedded.patching.document_bounds import check_document

MAX_ENTRIES = 10_000
"""Entries of a list that is merged or ordered, before and in the patch."""
_PATCH = "$patch"
_RETAIN = "$retainKeys"
_DELETE = "$deleteFromPrimitiveList/"
_ORDER = "$setElementOrder/"


def strategic_merge(document: dict[str, Any], patch: Any, schema: Schema) -> dict[str, Any]:
    """The document with the patch merged in by its schema."""
    check_document(patch)
    if not isinstance(patch, dict | None):
        raise StatusError(400, f"a strategic merge patch is an object, not {type(patch).__name__}")
    typed = {key: value for key, value in (patch or {}).items() if not _is_type(key, value)}
    return _map(document, typed, schema)


def _is_type(key: str, value: Any) -> bool:
    """Whether an entry of a patch only says of what type the object is."""
    return key in ("apiVersion", "kind") and isinstance(value, str | None)


def _map(original: dict[str, Any], patch: dict[str, Any], schema: Schema) -> dict[str, Any]:
    directive = patch.get(_PATCH)
    if directive == "replace":
        return {
            key: _strip(value) for key, value in patch.items() if key != _PATCH and not _is_deleted(value)
        }
    if directive == "delete":
        return {}
    if _PATCH in patch:
        raise StatusError(
            400, f"unknown patch type {_excerpt(directive)} of a map: replace and delete are known"
        )
    result = _retained(original, patch)
    orders = {
        key[len(_ORDER) :]: _entries(value, key) for key, value in patch.items() if key.startswith(_ORDER)
    }
    for key, order in orders.items():
        _check_order(patch.get(key), order, schema.child(key).merge_key)
    for key, value in patch.items():
        if key.startswith(_DELETE):
            field = key[len(_DELETE) :]
            _delete(result, field, _entries(value, key))
        elif not key.startswith(("$patch", _RETAIN, _ORDER)):
            _field(result, key, value, schema.child(key), orders.get(key))
    for key, order in orders.items():
        values, before, child = result.get(key), original.get(key), schema.child(key)
        if isinstance(values, list) and (
            child.merge_key or not any(isinstance(entry, dict) for entry in values)
        ):
            result[key] = _ordered(values, order, before if isinstance(before, list) else [], child)
    for key in patch:
        if result.get(key) in ({}, []) and _is_collection(schema.child(key)):
            del result[key]
    return result


def _is_collection(schema: Schema) -> bool:
    """Whether a value is a map or list, of which an empty one is none."""
    return schema.items is not None or schema.additional_properties is not None


def _check_order(values: Any, order: list[Any], merge_key: str) -> None:
    """Entries of the patch stand in the order that it asks for."""
    _check_length(len(order))
    wanted = iter([_key_of(entry, merge_key) for entry in order])
    entries = [
        entry
        for entry in (values if isinstance(values, list) else ())
        if not (isinstance(entry, dict) and entry.get(_PATCH) == "delete")
    ]
    if not all(_key_of(entry, merge_key) in wanted for entry in entries):
        raise StatusError(400, "the order in the patch list does not match its $setElementOrder list")


def _retained(original: dict[str, Any], patch: dict[str, Any]) -> dict[str, Any]:
    if _RETAIN not in patch:
        return dict(original)
    keys = set(_unique(_entries(patch[_RETAIN], _RETAIN)))
    for key, value in patch.items():
        if value is not None and not key.startswith("$") and key not in keys:
            raise StatusError(
                400, f"{_RETAIN} lists every key that the patch sets, and {key[:64]!r} is missing"
            )
    return {key: value for key, value in original.items() if key in keys}


def _field(result: dict[str, Any], key: str, value: Any, schema: Schema, order: list[Any] | None) -> None:
    before = result.get(key)
    if value is None:
        result.pop(key, None)
    elif isinstance(value, dict) and isinstance(before, dict) and "replace" not in schema.patch_strategies:
        result[key] = _map(before, value, schema)
    elif isinstance(value, list) and isinstance(before, list) and "merge" in schema.patch_strategies:
        result[key] = _list(before, value, schema, order is None)
    elif isinstance(value, dict) and _PATCH in value:
        result[key] = {}
    else:
        result[key] = _strip(value)


def _list(original: list[Any], patch: list[Any], schema: Schema, arrange: bool) -> list[Any]:
    _check_length(len(original) + len(patch))
    if not any(isinstance(entry, dict) for entry in (*original, *patch)):
        merged = _unique((*original, *patch))
        return _ordered(merged, patch, original, schema) if arrange else merged
    key = schema.merge_key
    if not key or not all(isinstance(entry, dict) for entry in (*original, *patch)):
        raise StatusError(
            422, "only a list of objects with a merge key, or one of plain values, can be merged"
        )
    kept, added = _apply_directives(original, patch, key)
    merged = _merged(kept, added, key, schema.element)
    return _ordered(merged, added, kept, schema) if arrange else merged


def _check_length(count: int) -> None:
    if count > MAX_ENTRIES:
        raise StatusError(
            413,
            f"a strategic merge patch would merge {count} entries of a list, and {MAX_ENTRIES} are allowed:"
            " replace the object by an update, or patch it with a merge patch or a JSON patch",
        )


def _apply_directives(original: list[Any], patch: list[Any], key: str) -> tuple[list[Any], list[Any]]:
    """Apply `$patch` entries: what remains of the original, and what remains of the patch."""
    deleted, replace, rest = set(), False, []
    for entry in patch:
        directive = entry.get(_PATCH) if isinstance(entry, dict) else None
        if directive == "delete":
            deleted.add(_key_of(entry, key))
        elif directive == "replace":
            replace = True
        elif directive is None:
            rest.append(entry)
        else:
            raise StatusError(
                400, f"unknown patch type {_excerpt(directive)} of an entry: delete and replace are known"
            )
    if replace:
        return [_strip(entry) for entry in rest], []
    return [entry for entry in original if _key_of(entry, key) not in deleted], rest


def _merged(original: list[Any], patch: list[Any], key: str, schema: Schema) -> list[Any]:
    positions, result = _positions(original, key), list(original)
    for entry in patch:
        name = _key_of(entry, key)
        if name in positions:
            result[positions[name]] = _map(result[positions[name]], entry, schema)
        else:
            positions[name] = len(result)
            result.append(_strip(entry))
    return result


def _delete(result: dict[str, Any], field: str, values: list[Any]) -> None:
    before = result.get(field)
    if isinstance(before, list):
        deleted = set(_unique(values))
        result[field] = [entry for entry in before if isinstance(entry, dict | list) or entry not in deleted]


def _ordered(merged: list[Any], order: list[Any], before: list[Any], schema: Schema) -> list[Any]:
    """Entries that the patch names in its order, the others at their old positions among them."""
    _check_length(len(merged) + len(order))
    key = schema.merge_key
    positions = _positions(order, key)
    old_positions = _positions(before, key)
    named = sorted(
        (entry for entry in merged if _key_of(entry, key) in positions),
        key=lambda entry: positions[_key_of(entry, key)],
    )
    others = sorted(
        (entry for entry in merged if _key_of(entry, key) not in positions),
        key=lambda entry: old_positions.get(_key_of(entry, key), len(old_positions)),
    )
    return _merge_ordered(others, named, lambda entry: old_positions.get(_key_of(entry, key)))


def _merge_ordered(
    others: list[Any], named: list[Any], old_position: Callable[[Any], int | None]
) -> list[Any]:
    """Two ordered lists as one: an entry of the first goes only before entries that it was before."""
    result, index = [], 0
    for entry in named:
        position = old_position(entry)
        while position is not None and index < len(others):
            other_position = old_position(others[index])
            if other_position is None or other_position >= position:
                break
            result.append(others[index])
            index += 1
        result.append(entry)
    return result + others[index:]


def _positions(entries: list[Any], key: str) -> dict[Any, int]:
    positions: dict[Any, int] = {}
    for index, entry in enumerate(entries):
        positions.setdefault(_key_of(entry, key), index)
    return positions


def _key_of(entry: Any, key: str) -> Any:
    """The value of an entry's merge key; scalars identify themselves."""
    if not isinstance(entry, dict):
        name = entry
    elif key in entry:
        name = entry[key]
    else:
        raise StatusError(422, f"an entry of the list does not contain the declared merge key: {key}")
    if isinstance(name, dict | list):
        raise StatusError(422, f"an entry of the list has no plain value as its merge key {key}")
    return name


def _unique(values: Iterable[Any]) -> list[Any]:
    try:
        return list(dict.fromkeys(values))
    except TypeError:
        raise StatusError(422, "a list of lists cannot be merged") from None


def _strip(value: Any) -> Any:
    """A new value without directives, which have nothing to act on there."""
    if isinstance(value, dict):
        return {
            key: _strip(child)
            for key, child in value.items()
            if not key.startswith((_PATCH, _RETAIN, _DELETE, _ORDER)) and not _is_deleted(child)
        }
    if isinstance(value, list):
        return [_strip(child) for child in value if not (isinstance(child, dict) and _PATCH in child)]
    return value


def _is_deleted(value: Any) -> bool:
    return value is None or (isinstance(value, dict) and value.get(_PATCH) == "delete")


def _entries(value: Any, directive: str) -> list[Any]:
    if not isinstance(value, list):
        raise StatusError(400, f"{directive[:80]} is followed by a list")
    return value


def _excerpt(value: Any) -> str:
    return repr(value)[:64]
