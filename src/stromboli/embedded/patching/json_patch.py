"""JSON patch (RFC 6902) as API servers carry it out: a list of operations, of which all are applied or none.

They differ from the RFC in some points: `replace` adds a missing key, `copy` of a missing key copies null, `test` takes
a missing key for null, a missing value is null, indexes may be negative, and the document as a whole can only be
replaced or tested.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import msgspec

from stromboli.embedded.api_status import StatusError
from stromboli.embedded.patching.document_bounds import check_document

MAX_OPERATIONS = 10_000
MAX_COPIED = 1536 * 1024
"""Bytes that `copy` operations may add in total."""
MAX_STEPS = 50_000
"""Steps of all paths together, and values that are copied."""

_INDEX = re.compile(r"[+-]?[0-9]{1,18}", re.ASCII)
"""A number as Go reads it."""


def json_patch(document: Any, operations: Any) -> Any:
    """The document after all operations; null has none."""
    check_document(operations)
    if operations is None:
        return document
    if not isinstance(operations, list):
        raise StatusError(400, "a JSON patch is a list of operations")
    if len(operations) > MAX_OPERATIONS:
        count = len(operations)
        message = f"The allowed maximum operations in a JSON patch is {MAX_OPERATIONS}, got {count}"
        raise StatusError(413, message)
    for operation in operations:
        _check_operation(operation)
    patched = CopyOnWriteDocument(document)
    for operation in operations:
        patched.apply(operation or {})
    check_document(patched.root, "result of the patch")
    return patched.root


def _check_operation(operation: Any) -> None:
    """Types, which are checked before anything is applied."""
    if not isinstance(operation, dict | None):
        raise StatusError(400, f"an operation of a JSON patch is an object, not {_excerpt(operation)}")
    for name in ("op", "path", "from"):
        text = operation.get(name) if operation else None
        if not isinstance(text, str | None):
            raise StatusError(400, f"{name!r} of a JSON patch is a text, not {_excerpt(text)}")


class CopyOnWriteDocument:
    """A document being patched: maps and lists are copied before their first change, and only then."""

    def __init__(self, document: Any) -> None:
        self.root = document
        self._copies: dict[int, Any] = {}
        """Maps and lists that were copied, by id; held so that no id is reused."""
        self._copied = 0
        self._steps = 0

    def apply(self, operation: dict[str, Any]) -> None:
        apply = _OPERATIONS.get(operation.get("op"))
        if apply is None:
            raise _refused(f"unknown operation {_excerpt(operation.get('op'))}")
        apply(self, operation)

    # -- operations

    def add(self, operation: dict[str, Any]) -> None:
        self._put(self._path(operation, "path"), operation.get("value"))

    def remove(self, operation: dict[str, Any]) -> None:
        self._take(self._path(operation, "path"))

    def replace(self, operation: dict[str, Any]) -> None:
        if operation.get("path") == "":
            self.root = operation.get("value")
            return
        path = self._path(operation, "path")
        parent = self._parent(path)
        self._get(parent, path)
        key = path[-1] if isinstance(parent, dict) else _index(path[-1], len(parent))
        parent[key] = operation.get("value")

    def move(self, operation: dict[str, Any]) -> None:
        value = self._take(self._path(operation, "from"))
        self._put(self._path(operation, "path"), value)

    def copy(self, operation: dict[str, Any]) -> None:
        value = self._find(self._path(operation, "from"))
        self._count_steps(check_document(value, "result of the patch"))
        text = msgspec.json.encode(value)
        self._copied += len(text)
        if self._copied > MAX_COPIED:
            raise StatusError(413, f"a JSON patch may copy at most {MAX_COPIED} bytes")
        self._put(self._path(operation, "path"), msgspec.json.decode(text))

    def test(self, operation: dict[str, Any]) -> None:
        path = [] if operation.get("path") == "" else self._path(operation, "path")
        current = self._find(path) if path else self.root
        if not _same(current, operation.get("value")):
            raise _refused(f"testing value {_text(path)} failed")

    # -- paths in the document

    def _path(self, operation: dict[str, Any], name: str) -> list[str]:
        """The tokens of a path; what is before its first slash does not count."""
        text = operation.get(name) or ""
        if "/" not in text:
            raise _refused(
                f"{name!r} of {_excerpt(operation.get('op'))} must begin with a slash, not {_excerpt(text)}"
            )
        self._count_steps(text.count("/"))
        return [token.replace("~1", "/").replace("~0", "~") for token in text.split("/")[1:]]

    def _count_steps(self, count: int) -> None:
        self._steps += count
        if self._steps > MAX_STEPS:
            raise StatusError(
                413,
                f"the paths of a JSON patch and the values that it copies may have {MAX_STEPS} steps together:"
                " divide it into several patches",
            )

    def _find(self, path: list[str]) -> Any:
        """The value at a path; a key that its map does not have is null."""
        node = self.root
        for depth in range(len(path) - 1):
            node = self._get(node, path[: depth + 1])
        return self._get(node, path)

    def _get(self, parent: Any, path: list[str]) -> Any:
        """The child of a map or list that the last token of a path names."""
        if isinstance(parent, dict):
            return parent.get(path[-1])
        if isinstance(parent, list):
            index = _index(path[-1], len(parent))
            if index is not None:
                return parent[index]
        raise _nothing_at(path)

    def _parent(self, path: list[str]) -> Any:
        """The map or list that a path ends in, copied if need be."""
        self.root = node = self._copied_once(self.root)
        for depth, token in enumerate(path[:-1]):
            child = self._get(node, path[: depth + 1])
            key = token if isinstance(node, dict) else _index(token, len(node))
            node[key] = node = self._copied_once(child)
        if not isinstance(node, dict | list):
            raise _nothing_at(path)
        return node

    def _copied_once(self, node: Any) -> Any:
        if id(node) in self._copies or not isinstance(node, dict | list):
            return node
        copied = node.copy()
        self._copies[id(copied)] = copied
        return copied

    def _put(self, path: list[str], value: Any) -> None:
        parent, token = self._parent(path), path[-1]
        if isinstance(parent, dict):
            parent[token] = value
            return
        index = len(parent) if token == "-" else _index(token, len(parent) + 1)
        if index is None:
            raise _refused(f"there is no place {_text(path)} in a list of {len(parent)}")
        parent.insert(index, value)

    def _take(self, path: list[str]) -> Any:
        parent = self._parent(path)
        if isinstance(parent, dict) and path[-1] not in parent:
            raise _nothing_at(path)
        value = self._get(parent, path)
        del parent[path[-1] if isinstance(parent, dict) else _index(path[-1], len(parent))]
        return value


_OPERATIONS: dict[Any, Callable[[CopyOnWriteDocument, dict[str, Any]], None]] = {
    "add": CopyOnWriteDocument.add,
    "remove": CopyOnWriteDocument.remove,
    "replace": CopyOnWriteDocument.replace,
    "move": CopyOnWriteDocument.move,
    "copy": CopyOnWriteDocument.copy,
    "test": CopyOnWriteDocument.test,
}


def _index(token: str, length: int) -> int | None:
    """A position in a list, from its end if negative; None if it has no such position."""
    if _INDEX.fullmatch(token) is None:
        return None
    index = int(token)
    if index < 0:
        index += length
    return index if 0 <= index < length else None


def _same(left: Any, right: Any) -> bool:
    """Equality as texts have it: 1 is not 1.0."""
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(_same(value, right[key]) for key, value in left.items())
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(_same, left, right))
    return type(left) is type(right) and bool(left == right)


def _nothing_at(path: list[str]) -> StatusError:
    return _refused(f"there is nothing at {_text(path)}")


def _refused(why: str) -> StatusError:
    return StatusError(422, f"the server rejected our request due to an error in our request: {why}")


def _text(path: list[str]) -> str:
    return "/" + "/".join(path) if path else "the root"


def _excerpt(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else text[:80] + "..."
