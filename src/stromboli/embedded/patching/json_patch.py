"""JSON patch (RFC 6902): a list of operations, of which all are applied or none."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from stromboli.api.schemas.value_formats import json_equal
from stromboli.embedded.api_status import StatusError
from stromboli.embedded.patching.document_depth import check_depth

MAX_OPERATIONS = 10_000
MAX_COPIED = 3 * 1024 * 1024
"""Bytes that `copy` operations may add in total."""

_MISSING = object()


def json_patch(document: Any, operations: Any) -> Any:
    """The document after all operations."""
    check_depth(operations)
    if not isinstance(operations, list):
        raise StatusError(400, "a JSON patch is a list of operations")
    if len(operations) > MAX_OPERATIONS:
        count = len(operations)
        message = f"The allowed maximum operations in a JSON patch is {MAX_OPERATIONS}, got {count}"
        raise StatusError(413, message)
    patched = CopyOnWriteDocument(document)
    for operation in operations:
        patched.apply(operation)
    check_depth(patched.root, "result of the patch")
    return patched.root


class CopyOnWriteDocument:
    """A document being patched: maps and lists are copied before their first change, and only then."""

    def __init__(self, document: Any) -> None:
        self.root = document
        self._copies: dict[int, Any] = {}
        """Maps and lists that were copied, by id; held so that no id is reused."""
        self._copied = 0

    def apply(self, operation: Any) -> None:
        if not isinstance(operation, dict):
            raise StatusError(400, f"an operation of a JSON patch is an object, not {_excerpt(operation)}")
        apply = _OPERATIONS.get(operation.get("op", ""))
        if apply is None:
            raise StatusError(400, f"unknown operation {_excerpt(operation.get('op'))} in a JSON patch")
        apply(self, operation)

    # -- operations

    def add(self, operation: dict[str, Any]) -> None:
        self._put(_path(operation, "path"), _value(operation))

    def remove(self, operation: dict[str, Any]) -> None:
        self._take(_path(operation, "path"))

    def replace(self, operation: dict[str, Any]) -> None:
        path, value = _path(operation, "path"), _value(operation)
        if not path:
            self.root = value
            return
        parent, key = self._existing(path)
        parent[key] = value

    def move(self, operation: dict[str, Any]) -> None:
        source, target = _path(operation, "from"), _path(operation, "path")
        if target[: len(source)] == source and target != source:
            raise _refused(f"cannot move {_text(source)} into itself")
        self._put(target, self._take(source))

    def copy(self, operation: dict[str, Any]) -> None:
        value = self._find(_path(operation, "from"))
        check_depth(value, "result of the patch")
        text = msgspec.json.encode(value)
        self._copied += len(text)
        if self._copied > MAX_COPIED:
            raise StatusError(413, f"a JSON patch may copy at most {MAX_COPIED} bytes")
        self._put(_path(operation, "path"), msgspec.json.decode(text))

    def test(self, operation: dict[str, Any]) -> None:
        path = _path(operation, "path")
        current = self._find(path, missing=None)
        if not json_equal(current, operation.get("value")):
            raise _refused(f"testing value {_text(path)} failed")

    # -- paths in the document

    def _find(self, path: list[str], missing: Any = _MISSING) -> Any:
        node = self.root
        for token in path:
            key = _key(node, token)
            if key is None:
                if missing is not _MISSING:
                    return missing
                raise _refused(f"there is nothing at {_text(path)}")
            node = node[key]
        return node

    def _existing(self, path: list[str]) -> tuple[Any, Any]:
        """The parent of an existing path, copied if need be, and the key in it."""
        parent = self._parent(path)
        key = _key(parent, path[-1])
        if key is None:
            raise _refused(f"there is nothing at {_text(path)}")
        return parent, key

    def _parent(self, path: list[str]) -> Any:
        self.root = node = self._copied_once(self.root)
        for token in path[:-1]:
            key = _key(node, token)
            if key is None:
                raise _refused(f"there is nothing around {_text(path)}")
            node[key] = node = self._copied_once(node[key])
        return node

    def _copied_once(self, node: Any) -> Any:
        if id(node) in self._copies or not isinstance(node, dict | list):
            return node
        copied = node.copy()
        self._copies[id(copied)] = copied
        return copied

    def _put(self, path: list[str], value: Any) -> None:
        if not path:
            self.root = value
            return
        parent, token = self._parent(path), path[-1]
        if isinstance(parent, dict):
            parent[token] = value
        elif isinstance(parent, list):
            index = len(parent) if token == "-" else _number(token)
            if index is None or index > len(parent):
                raise _refused(f"there is no place {_text(path)} in a list of {len(parent)}")
            parent.insert(index, value)
        else:
            raise _refused(f"there is nothing around {_text(path)}")

    def _take(self, path: list[str]) -> Any:
        if not path:
            raise _refused("the whole object cannot be removed")
        parent, key = self._existing(path)
        return parent.pop(key)


_OPERATIONS: dict[Any, Callable[[CopyOnWriteDocument, dict[str, Any]], None]] = {
    "add": CopyOnWriteDocument.add,
    "remove": CopyOnWriteDocument.remove,
    "replace": CopyOnWriteDocument.replace,
    "move": CopyOnWriteDocument.move,
    "copy": CopyOnWriteDocument.copy,
    "test": CopyOnWriteDocument.test,
}


def _path(operation: dict[str, Any], name: str) -> list[str]:
    text = operation.get(name)
    if not isinstance(text, str):
        raise StatusError(400, f"operation {_excerpt(operation.get('op'))} of a JSON patch needs {name!r}")
    if not text:
        return []
    if not text.startswith("/"):
        raise StatusError(400, f"a path in a JSON patch begins with a slash, not {_excerpt(text)}")
    return [token.replace("~1", "/").replace("~0", "~") for token in text[1:].split("/")]


def _value(operation: dict[str, Any]) -> Any:
    if "value" not in operation:
        raise StatusError(400, f"operation {_excerpt(operation.get('op'))} of a JSON patch needs 'value'")
    return operation["value"]


def _key(node: Any, token: str) -> Any:
    """The key or index that a token names in a map or list, or None."""
    if isinstance(node, dict):
        return token if token in node else None
    if isinstance(node, list):
        number = _number(token)
        return number if number is not None and number < len(node) else None
    return None


def _number(token: str) -> int | None:
    plain = token.isascii() and token.isdigit() and len(token) < 10 and (token == "0" or token[0] != "0")
    return int(token) if plain else None


def _refused(why: str) -> StatusError:
    return StatusError(422, f"the server rejected our request due to an error in our request: {why}")


def _text(path: list[str]) -> str:
    return "/" + "/".join(path) if path else "the root"


def _excerpt(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else text[:80] + "..."
