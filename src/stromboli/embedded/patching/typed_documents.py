"""Documents by their schema: the fields they set, how two of them differ, merging them, removing fields.

A field is a leaf if its value changes as a whole: scalars, lists without keys, maps that are declared atomic. Where the
schema says nothing, maps are granular and lists are leaves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from stromboli.api.schemas.schema import Schema
from stromboli.api.schemas.value_formats import json_equal
from stromboli.embedded.api_status import StatusError
from stromboli.embedded.patching.field_sets import SELF, FieldSet, entry_key, insert, is_member, value_key

_ABSENT: Any = object()
MAX_FIELDS = 5_000
"""Fields of an object with managers; a list without keys, such as the tasks of a job, is one field."""


class Comparison(NamedTuple):
    """Fields that were added, modified and removed from one document to another."""

    added: FieldSet
    modified: FieldSet
    removed: FieldSet


def children(value: Any, schema: Schema, unique: bool = False) -> dict[str, Any] | None:
    """The children of a value by path element; None for a leaf."""
    if isinstance(value, dict):
        return {f"f:{key}": child for key, child in value.items()} if schema.granular_map else None
    if isinstance(value, list) and schema.granular_list:
        return _entries(value, schema, unique)
    return None


def _entries(values: list[Any], schema: Schema, unique: bool) -> dict[str, Any]:
    """The items of a list by path element; of items with the same keys the first, unless that is an error."""
    entries: dict[str, Any] = {}
    key_of = _path_element(schema)
    for value in values:
        key = key_of(value)
        if unique and key in entries:
            raise StatusError(400, f"duplicate entries for key [{key[2:][:200]}]")
        entries.setdefault(key, value)
    return entries


def _path_element(schema: Schema) -> Callable[[Any], str]:
    if schema.list_type == "set":
        return value_key
    defaults = {key: schema.element.child(key).default for key in schema.list_map_keys}

    def key_of(value: Any) -> str:
        if not isinstance(value, dict):
            raise StatusError(
                400, f"an entry of a list with keys {', '.join(schema.list_map_keys)} is an object"
            )
        return entry_key(value, defaults)

    return key_of


def _child_schema(schema: Schema, key: str) -> Schema:
    return schema.child(key[2:]) if key.startswith("f:") else schema.element


# -- the fields that a document sets


def check_field_count(document: Any, schema: Schema) -> None:
    """Refuse a document that sets more fields than can be compared and merged in good time."""
    pending, left = [(document, schema)], MAX_FIELDS
    while pending:
        value, schema = pending.pop()
        entries: Iterable[tuple[str, Any]] = ()
        if isinstance(value, dict) and schema.granular_map:
            entries = value.items()
        elif isinstance(value, list) and schema.granular_list:
            entries = (("", entry) for entry in value)
        left -= len(value) if entries else 0
        if left < 0:
            raise StatusError(
                413,
                f"the object sets more than {MAX_FIELDS} fields, more than have managers:"
                " divide it among several objects, or write it without server-side apply",
            )
        for key, child in entries:
            if isinstance(child, dict | list):
                pending.append((child, schema.child(key) if isinstance(value, dict) else schema.element))


def field_set_of(document: Any, schema: Schema, unique: bool = True) -> FieldSet:
    """The fields that a document sets: leaves, entries of maps and lists, and empty maps."""
    fields: FieldSet = {}
    for key, value in (children(document, schema, unique) or {}).items():
        if not isinstance(value, dict | list):
            fields[key] = {}
            continue
        inner = _child_schema(schema, key)
        named = key[2:] in schema.properties and key.startswith("f:")
        leaf = value == {} or children(value, inner) is None
        insert(fields, key, field_set_of(value, inner, unique), member=leaf or not named)
    return fields


def with_named_fields(fields: FieldSet, schema: Schema) -> FieldSet:
    """The set with every parent of a member that is a field of an object, not an entry of a map, as a member too."""
    result: FieldSet = {}
    for key, nested in fields.items():
        if key == SELF or not nested:
            result[key] = nested
            continue
        named = key.startswith("f:") and key[2:] in schema.properties
        inner = with_named_fields(nested, _child_schema(schema, key))
        result[key] = {SELF: {}, **inner} if inner and named else inner
    return result


# -- how two documents differ


def compare(old: dict[str, Any], new: dict[str, Any], schema: Schema) -> Comparison:
    """Every field that was added, modified or removed from one document to the other."""
    difference = Comparison({}, {}, {})
    _compare(children(old, schema) or {}, children(new, schema) or {}, schema, difference)
    return difference


def _compare(
    old_children: dict[str, Any], new_children: dict[str, Any], schema: Schema, into: Comparison
) -> None:
    for key, new in new_children.items():
        old = old_children.get(key, _ABSENT)
        if old is _ABSENT or not json_equal(old, new):
            _compare_field(key, old, new, schema, into)
    for key, old in old_children.items():
        if key not in new_children:
            _compare_field(key, old, _ABSENT, schema, into)


def _compare_field(key: str, old: Any, new: Any, parent: Schema, into: Comparison) -> None:
    if not isinstance(old, dict | list) and not isinstance(new, dict | list):
        changed = into.added if old is _ABSENT else into.removed if new is _ABSENT else into.modified
        changed[key] = {}
        return
    schema = _child_schema(parent, key)
    old_children, new_children = children(old, schema), children(new, schema)
    nested = Comparison({}, {}, {})
    if old_children or new_children:
        _compare(old_children or {}, new_children or {}, schema, nested)
    both = old is not _ABSENT and new is not _ABSENT
    whole = old_children is None or new_children is None or type(old) is not type(new)
    if (old is None and new_children) or (new is None and old_children):
        whole = False  # null is as good as an empty map
    insert(into.added, key, nested.added, member=old is _ABSENT)
    insert(into.modified, key, nested.modified, member=both and whole)
    insert(into.removed, key, nested.removed, member=new is _ABSENT)


# -- merging one document into another


def merge(live: Any, config: Any, schema: Schema) -> Any:
    """The live document with all fields of the config; fields that the config leaves out stay."""
    if isinstance(live, dict) and isinstance(config, dict) and schema.granular_map:
        result = dict(live)
        for key, value in config.items():
            result[key] = merge(live[key], value, schema.child(key)) if key in live else value
        return result
    if isinstance(live, list) and isinstance(config, list) and schema.granular_list:
        return _merge_lists(live, config, schema)
    return config


def _merge_lists(live: list[Any], config: list[Any], schema: Schema) -> list[Any]:
    """Items of the config in its order; items of the live list alone stay before those that they were before."""
    live_items, config_items = _entries(live, schema, unique=False), _entries(config, schema, unique=True)
    order = list(live_items)
    shared = iter([key for key in config_items if key in live_items])
    next_shared = next(shared, None)
    result: list[Any] = []
    index = 0
    for key, value in config_items.items():
        while index < len(order) and order[index] != key:
            live_key = order[index]
            if live_key == next_shared:
                break
            index += 1
            if live_key not in config_items:
                result.append(live_items[live_key])
            elif next_shared is None:
                break
        if key == next_shared:
            next_shared = next(shared, None)
        if index < len(order) and order[index] == key:
            index += 1
        result.append(merge(live_items[key], value, schema.element) if key in live_items else value)
    result.extend(live_items[live_key] for live_key in order[index:] if live_key not in config_items)
    return result


# -- removing fields


def remove_fields(document: Any, fields: FieldSet, schema: Schema) -> Any:
    """The document without the members of a set. A map or list that loses everything stays, empty."""
    if not fields:
        return document
    if isinstance(document, dict) and schema.granular_map:
        return _remove_from_map(document, fields, schema)
    if isinstance(document, list) and schema.granular_list:
        return _remove_from_list(document, fields, schema)
    return document


def _remove_from_map(document: dict[str, Any], fields: FieldSet, schema: Schema) -> dict[str, Any]:
    result = {}
    for key, value in document.items():
        nested = fields.get(f"f:{key}")
        if nested is None:
            result[key] = value
        elif not is_member(nested):
            result[key] = remove_fields(value, nested, schema.child(key))
    return result


def _remove_from_list(values: list[Any], fields: FieldSet, schema: Schema) -> list[Any]:
    result, key_of = [], _path_element(schema)
    for value in values:
        nested = fields.get(key_of(value))
        if nested is None:
            result.append(value)
        elif not is_member(nested):
            result.append(remove_fields(value, nested, schema.element))
    return result
