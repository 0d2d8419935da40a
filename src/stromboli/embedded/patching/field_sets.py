"""Field sets, in the form in which `managedFields` has them (FieldsV1).

A set is a tree of dicts. A key is a path element: `f:name` a field, `k:{"name":"a"}` the item of a list with those
keys, `v:"a"` a value of a set. An empty dict is a member, and so is one with the key `.`; any other only leads to its
members. So `{"f:spec": {"f:replicas": {}}}` contains the one path spec.replicas.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

FieldSet = dict[str, Any]
SELF = "."


def union(left: FieldSet, right: FieldSet) -> FieldSet:
    if not left or not right:
        return left or right
    result = dict(left)
    for key, children in right.items():
        existing = result.get(key)
        result[key] = children if existing is None else _joined(existing, children)
    return result


def _joined(left: FieldSet, right: FieldSet) -> FieldSet:
    """Both subtrees of one key, where an empty one is a member."""
    if not left or not right:
        rest = left or right
        return {SELF: {}, **rest} if rest else {}
    return union(left, right)


def difference(left: FieldSet, right: FieldSet) -> FieldSet:
    """Members of the first that are not members of the second."""
    return _filtered(left, right, keep_shared=False)


def intersection(left: FieldSet, right: FieldSet) -> FieldSet:
    """Members of both."""
    return _filtered(left, right, keep_shared=True)


def _filtered(left: FieldSet, right: FieldSet, keep_shared: bool) -> FieldSet:
    result: FieldSet = {}
    for key, children in left.items():
        if key == SELF:
            continue
        match = right.get(key)
        if match is None:
            if not keep_shared:
                result[key] = children
            continue
        member = is_member(children) and is_member(match) == keep_shared
        rest = _filtered(children, match, keep_shared)
        if rest:
            result[key] = {SELF: {}, **rest} if member else rest
        elif member:
            result[key] = {}
    return result


def is_member(children: Mapping[str, Any]) -> bool:
    """Whether the path element with this subtree is a member itself."""
    return not children or SELF in children


def insert(fields: FieldSet, key: str, children: FieldSet, member: bool) -> None:
    """Insert a path element with its children, unless neither it nor any of them is a member."""
    if children:
        fields[key] = {SELF: {}, **children} if member else children
    elif member:
        fields[key] = {}


def paths(fields: FieldSet, prefix: str = "") -> Iterator[str]:
    """Members as messages have them: `.spec.containers[name="a"].image`, those of a level before those below it."""
    steps = [(key, prefix + _step(key)) for key in sorted(fields) if key != SELF]
    yield from (path for key, path in steps if is_member(fields[key]))
    for key, path in steps:
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
    """The path element of a list item; a key that the item leaves out has its default."""
    named = {}
    for key in sorted(keys):
        value = entry.get(key, keys[key])
        if value is not msgspec.UNSET:
            named[key] = value
    return "k:" + _json(named)


def value_key(value: Any) -> str:
    """The path element of a value of a set."""
    return "v:" + _json(value)


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode()
