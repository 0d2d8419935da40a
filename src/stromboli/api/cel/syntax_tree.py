"""The syntax tree of a compiled expression, read from the protobuf message that the library gives of it.

The message is `cel.expr.CheckedExpr` of the CEL specification. Macros such as `all` and `map` are comprehensions in it.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

CONSTANT, IDENTIFIER, SELECT, CALL, LIST, STRUCT, COMPREHENSION = (
    "constant",
    "identifier",
    "select",
    "call",
    "list",
    "struct",
    "comprehension",
)


class Unsigned(int):
    """A constant such as `1u`."""


@dataclass(frozen=True, slots=True)
class Node:
    """An expression within an expression."""

    kind: str
    name: str = ""
    """Of an identifier, of the field that is selected, of the function; of a comprehension, its variable."""
    children: tuple[Node, ...] = ()
    """The operand; the target of a method, if there is one, and arguments; elements; keys and values. Of a
    comprehension: its range, the first value of the accumulator, the condition to go on, the step and the result."""
    value: Any = None
    """Of a constant."""
    is_test: bool = False
    """Whether a selection only tests presence, as `has()` does."""
    has_optional: bool = False
    """Whether a list or struct has optional elements, as in `[?a.b]`."""
    is_method: bool = False
    """Whether the first child of a call is its target."""
    accumulator: str = ""
    second_variable: str = ""

    def __iter__(self) -> Iterator[Node]:
        """The node and all nodes below."""
        nodes = [self]
        while nodes:
            node = nodes.pop()
            yield node
            nodes += node.children


def read_tree(serialized: bytes) -> Node:
    """The tree of a serialized `google.protobuf.Any` that holds a checked expression."""
    return _expression(_message(_message(serialized)[2][0])[4][0])


def _message(data: bytes) -> dict[int, list[Any]]:
    """The fields of a protobuf message by number, each with its values; bytes are not interpreted."""
    fields: dict[int, list[Any]] = {}
    position, end = 0, len(data)
    while position < end:
        tag = data[position]  # no message of an expression has a field beyond 15, so tags take a byte
        value: Any = data[position + 1]
        position += 2
        if tag & 7 == 1:
            value, position = data[position - 1 : position + 7], position + 7
        else:
            if value >= 0x80:
                value, position = _varint(data, position - 1)
            if tag & 7 == 2:
                value, position = data[position : position + value], position + value
        if tag >> 3 in fields:
            fields[tag >> 3].append(value)
        else:
            fields[tag >> 3] = [value]
    return fields


def _varint(data: bytes, position: int) -> tuple[int, int]:
    result = shift = 0
    while True:
        byte = data[position]
        position += 1
        result |= (byte & 0x7F) << shift
        if byte < 0x80:
            return result, position
        shift += 7


def _expression(data: bytes) -> Node:
    fields = _message(data)
    for number, read in _READERS.items():
        if number in fields:
            return read(_message(fields[number][0]))
    return Node(CONSTANT)


def _text(fields: dict[int, list[Any]], number: int) -> str:
    return fields[number][0].decode() if number in fields else ""


def _children(fields: dict[int, list[Any]], *numbers: int) -> tuple[Node, ...]:
    return tuple(_expression(data) for number in numbers for data in fields.get(number, ()))


def _constant(fields: dict[int, list[Any]]) -> Node:
    for number, read in _CONSTANTS.items():
        if number in fields:
            return Node(CONSTANT, value=read(fields[number][0]))
    return Node(CONSTANT)


def _signed(number: int) -> int:
    return number - 2**64 if number >= 2**63 else number


_CONSTANTS: dict[int, Callable[[Any], Any]] = {
    2: bool,
    3: _signed,
    4: Unsigned,
    5: lambda data: struct.unpack("<d", data)[0],
    6: bytes.decode,
    7: bytes,
}
"""By the field of `cel.expr.Constant` that is set; null has none of these."""


def _struct(fields: dict[int, list[Any]]) -> Node:
    entries = [_message(data) for data in fields.get(2, ())]
    children = tuple(child for entry in entries for child in _children(entry, 3, 4))
    has_optional = any(5 in entry for entry in entries)
    return Node(STRUCT, _text(fields, 1), children, has_optional=has_optional)


def _comprehension(fields: dict[int, list[Any]]) -> Node:
    return Node(
        COMPREHENSION,
        _text(fields, 1),
        _children(fields, 2, 4, 5, 6, 7),
        accumulator=_text(fields, 3),
        second_variable=_text(fields, 8),
    )


_READERS = {
    3: _constant,
    4: lambda fields: Node(IDENTIFIER, _text(fields, 1)),
    5: lambda fields: Node(SELECT, _text(fields, 2), _children(fields, 1), is_test=3 in fields),
    6: lambda fields: Node(CALL, _text(fields, 2), _children(fields, 1, 3), is_method=1 in fields),
    7: lambda fields: Node(LIST, children=_children(fields, 1), has_optional=2 in fields),
    8: _struct,
    9: _comprehension,
}
"""By the field of `cel.expr.Expr` that is set."""
