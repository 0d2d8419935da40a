"""OpenAPI v2 documents in the protobuf form of gnostic's `openapi.v2.Document`, which is how kubectl reads them.

Only the fields that our documents have are written. A message is a list of (number, value); numbers are those of the
published definition.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable
from typing import Any

import msgspec

Node = dict[str, Any]
Encode = Callable[[Any], bytes]


def encoded(document: Node) -> bytes:
    """The document as a protobuf message."""
    return b"".join(
        (
            _text(1, document["swagger"]),
            _bytes(2, _text(1, document["info"]["title"]) + _text(2, document["info"]["version"])),
            _bytes(8, _named(2, document["paths"], _path)),
            _bytes(9, _named(1, document["definitions"], _schema)),
        )
    )


# -- wire types


def _varint(number: int) -> bytes:
    number &= 0xFFFFFFFFFFFFFFFF
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def _bytes(field: int, value: bytes) -> bytes:
    return _varint(field << 3 | 2) + _varint(len(value)) + value


def _text(field: int, value: str) -> bytes:
    return _bytes(field, value.encode())


def _whole(field: int, value: int) -> bytes:
    return _varint(field << 3) + _varint(value)


def _double(field: int, value: float) -> bytes:
    return _varint(field << 3 | 1) + struct.pack("<d", value)


def _named(field: int, entries: Node, encode: Encode) -> bytes:
    """Maps are repeated messages of a name and a value."""
    return b"".join(
        _bytes(field, _text(1, name) + _bytes(2, encode(value))) for name, value in entries.items()
    )


def _any(value: Any) -> bytes:
    """A value of no type in particular travels as a text in YAML; JSON is YAML too."""
    return _bytes(2, msgspec.json.encode(value) + b"\n")


def _extensions(field: int, node: Node) -> bytes:
    return _named(field, {name: value for name, value in node.items() if name.startswith("x-")}, _any)


# -- messages

_METHODS = {"get": 2, "put": 3, "post": 4, "delete": 5, "patch": 8}


def _path(node: Node) -> bytes:
    return b"".join(_bytes(_METHODS[method], _operation(operation)) for method, operation in node.items())


def _operation(node: Node) -> bytes:
    responses = _named(1, node["responses"], lambda response: _bytes(1, _text(1, response["description"])))
    return b"".join(
        (
            *(_text(7, media) for media in node.get("consumes", ())),
            *(_bytes(8, _parameter(parameter)) for parameter in node.get("parameters", ())),
            _bytes(9, responses),
            _extensions(13, node),
        )
    )


def _parameter(node: Node) -> bytes:
    query = _text(2, node["in"]) + _text(4, node["name"]) + _text(6, node["type"])
    return _bytes(1, _bytes(2, _bytes(3, query)))


def _texts(field: int) -> Callable[[Iterable[str]], bytes]:
    return lambda values: b"".join(_text(field, text) for text in values)


_SCHEMA: dict[str, Encode] = {
    "$ref": lambda value: _text(1, value),
    "format": lambda value: _text(2, value),
    "description": lambda value: _text(4, value),
    "default": lambda value: _bytes(5, _any(value)),
    "multipleOf": lambda value: _double(6, value),
    "maximum": lambda value: _double(7, value),
    "exclusiveMaximum": lambda value: _whole(8, value),
    "minimum": lambda value: _double(9, value),
    "exclusiveMinimum": lambda value: _whole(10, value),
    "maxLength": lambda value: _whole(11, value),
    "minLength": lambda value: _whole(12, value),
    "pattern": lambda value: _text(13, value),
    "maxItems": lambda value: _whole(14, value),
    "minItems": lambda value: _whole(15, value),
    "maxProperties": lambda value: _whole(17, value),
    "minProperties": lambda value: _whole(18, value),
    "required": _texts(19),
    "enum": lambda value: b"".join(_bytes(20, _any(item)) for item in value),
    "additionalProperties": lambda value: _bytes(21, _bytes(1, _schema(value))),
    "type": lambda value: _bytes(22, _text(1, value)),
    "items": lambda value: _bytes(23, _bytes(1, _schema(value))),
    "properties": lambda value: _bytes(25, _named(1, value, _schema)),
}


def _schema(node: Node) -> bytes:
    known = b"".join(encode(node[name]) for name, encode in _SCHEMA.items() if name in node)
    return known + _extensions(31, node)
