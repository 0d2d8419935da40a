"""Syntax trees that were rewritten, as the protobuf message `cel.expr.ParsedExpr` that the library compiles."""

from __future__ import annotations

import struct
from collections.abc import Callable

from stromboli.api.cel.syntax_tree import (
    CALL,
    COMPREHENSION,
    CONSTANT,
    IDENTIFIER,
    LIST,
    SELECT,
    STRUCT,
    Node,
    Unsigned,
)

_TYPE = b"type.googleapis.com/cel.expr.ParsedExpr"


def encoded_tree(tree: Node) -> bytes:
    """A serialized `google.protobuf.Any` that holds a parsed expression."""
    return _bytes(1, _TYPE) + _bytes(2, _bytes(2, _Encoder().expression(tree)))


class _Encoder:
    """Gives each node an id."""

    def __init__(self) -> None:
        self._last = 0

    def expression(self, node: Node) -> bytes:
        self._last += 1
        number, encode = self._kinds()[node.kind]
        return _number(2, self._last) + _bytes(number, encode(node))

    def _kinds(self) -> dict[str, tuple[int, Callable[[Node], bytes]]]:
        """The field of `cel.expr.Expr` by kind, and what is in it."""
        return {
            CONSTANT: (3, _constant),
            IDENTIFIER: (4, lambda node: _text(1, node.name)),
            SELECT: (5, self._select),
            CALL: (6, self._call),
            LIST: (7, lambda node: self._all(1, node.children)),
            STRUCT: (8, self._struct),
            COMPREHENSION: (9, self._comprehension),
        }

    def _all(self, number: int, nodes: tuple[Node, ...]) -> bytes:
        return b"".join(_bytes(number, self.expression(node)) for node in nodes)

    def _select(self, node: Node) -> bytes:
        return self._all(1, node.children) + _text(2, node.name) + (_number(3, 1) if node.is_test else b"")

    def _call(self, node: Node) -> bytes:
        target, arguments = (node.children[:1], node.children[1:]) if node.is_method else ((), node.children)
        return self._all(1, target) + _text(2, node.name) + self._all(3, arguments)

    def _struct(self, node: Node) -> bytes:
        pairs = zip(node.children[::2], node.children[1::2], strict=True)
        return b"".join(_bytes(2, self._entry(key, value)) for key, value in pairs)

    def _entry(self, key: Node, value: Node) -> bytes:
        self._last += 1
        return _number(1, self._last) + _bytes(3, self.expression(key)) + _bytes(4, self.expression(value))

    def _comprehension(self, node: Node) -> bytes:
        values, first, condition, step, result = (self.expression(child) for child in node.children)
        return (
            _text(1, node.name)
            + _bytes(2, values)
            + _text(3, node.accumulator)
            + _bytes(4, first)
            + _bytes(5, condition)
            + _bytes(6, step)
            + _bytes(7, result)
            + (_text(8, node.second_variable) if node.second_variable else b"")
        )


def _constant(node: Node) -> bytes:
    match node.value:
        case None:
            return _number(1, 0)
        case bool():
            return _number(2, int(node.value))
        case Unsigned():
            return _number(4, node.value)
        case int():
            return _number(3, node.value % 2**64)
        case float():
            return bytes([5 << 3 | 1]) + struct.pack("<d", node.value)
        case str():
            return _text(6, node.value)
    return _bytes(7, node.value)


def _text(number: int, text: str) -> bytes:
    return _bytes(number, text.encode())


def _bytes(number: int, data: bytes) -> bytes:
    return _varint(number << 3 | 2) + _varint(len(data)) + data


def _number(number: int, value: int) -> bytes:
    return _varint(number << 3) + _varint(value)


def _varint(value: int) -> bytes:
    result = bytearray()
    while value >= 0x80:
        result.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*result, value])
