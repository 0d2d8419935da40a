"""Sets of fields, in the form in which `managedFields` keeps them (fieldsV1).

A set is a tree of dicts. A key leads to a part of the object: `f:name` to a field, `k:{"name":"a"}` to the entry of a
list with those keys, `v:"a"` to a value of a set. An empty dict is a member, and so is one with the key `.`; any other
is only on the way to its members. So `{"f:spec": {"f:replicas": {}}}` contains the one path spec.replicas.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

FieldSet = dict[str, Any]
SELF = "."


def union(left: FieldSet, other: FieldSet) -> FieldSet:
    if not left or not other:
        return left or other
    result = dict(left)
    for key, below in other.items():
        known = result.get(key)
        result[key] = below if known is None else _joined(known, below)
    return result


def _joined(left: FieldSet, other: FieldSet) -> FieldSet:
    """Both subtrees under one key, where an empty one stands for a member."""
    if not left or not other:
        rest = left or other
        return {SELF: {}, **rest} if rest else {}
    return union(left, other)


def difference(left: FieldSet, other: FieldSet) -> FieldSet:
    """Members of the first that are no members of the second."""
    return _filtered(left, other, keep_shared=False)


def intersection(left: FieldSet, other: FieldSet) -> FieldSet:
    """Members of both."""
    return _filtered(left, other, keep_shared=True)


def _filtered(left: FieldSet, other: FieldSet, keep_shared: bool) -> FieldSet:
    result: FieldSet = {}
    for key, below in left.items():
        if key == SELF:
            continue
        match = other.get(key)
        if match is None:
            if not keep_shared:
                result[key] = below
            continue
        member = is_member(below) and is_member(match) == keep_shared
        rest = _filtered(below, match, keep_shared)
        if rest:
            result[key] = {SELF: {}, **rest} if member else rest
        elif member:
            result[key] = {}
    return result


def is_member(below: Mapping[str, Any]) -> bool:
    """Whether the place with this subtree belongs to the set itself."""
    return not below or SELF in below


def insert(fields: FieldSet, key: str, below: FieldSet, member: bool) -> None:
    """Put a place with what is below it into a set; nothing, if neither it nor anything below is a member."""
    if below:
        fields[key] = {SELF: {}, **below} if member else below
    elif member:
        fields[key] = {}


def paths(fields: FieldSet, before: str = "") -> Iterator[str]:
    """Members as people read them: `.spec.containers[name="a"].image`. A place comes before what is below it."""
    for key in sorted(fields):
        if key == SELF:
            continue
        path = before + _step(key)
        if is_member(fields[key]):
            yield path
        yield from paths(fields[key], path)


def _step(key: str) -> str:
    kind, _, text = key.partition(":")
    if kind == "f":
        return f".{text}"
    if kind == "k":
        try:
            keys = msgspec.json.decode(text)
            return "[" + ",".join(f"{name}={_json(value)}" for name, value in sorted(keys.items())) + "]"
        except (ValueError, AttributeError):
            return f"[{text}]"
    return f"[={text}]" if kind == "v" else f"[{text}]"


def entry_key(entry: Mapping[str, Any], keys: Mapping[str, Any]) -> str:
    """The key that leads to an entry of a list; a key that the entry leaves out has its default."""
    named = {}
    for key in sorted(keys):
        value = entry.get(key, keys[key])
        if value is not msgspec.UNSET:
            named[key] = value
    return "k:" + _json(named)


def value_key(value: Any) -> str:
    """The key that leads to a value of a set."""
    return "v:" + _json(value)


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode()
