"""OpenAPI v2 documents as protobuf: gnostic's `openapi.v2.Document`, which kubectl reads.

Only fields that our documents have are written; field numbers are those of the published definition.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable
from typing import Any

import msgspec

Node = dict[str, Any]
Encode = Callable[[Any], bytes]


def encode_document(document: Node, definitions: dict[str, bytes]) -> bytes:
    """The document as a protobuf message, with definitions that are encoded already."""
    return b"".join(
        (
            _string(1, document["swagger"]),
            _bytes(2, _string(1, document["info"]["title"]) + _string(2, document["info"]["version"])),
            _bytes(8, _named(2, document["paths"], _path)),
            _bytes(9, _named(1, definitions, bytes)),
        )
    )


# -- wire types


def _varint(number: int) -> bytes:
    number &= 0xFFFFFFFFFFFFFFFF
    encoded_bytes = bytearray()
    while number > 0x7F:
        encoded_bytes.append(number & 0x7F | 0x80)
        number >>= 7
    encoded_bytes.append(number)
    return bytes(encoded_bytes)


def _bytes(field: int, value: bytes) -> bytes:
    return _varint(field << 3 | 2) + _varint(len(value)) + value


def _string(field: int, value: str) -> bytes:
    return _bytes(field, value.encode())


def _integer(field: int, value: int) -> bytes:
    return _varint(field << 3) + _varint(value)


def _double(field: int, value: float) -> bytes:
    return _varint(field << 3 | 1) + struct.pack("<d", value)


def _named(field: int, entries: Node, encode: Encode) -> bytes:
    """A map is a repeated message of a name and a value."""
    return b"".join(
        _bytes(field, _string(1, name) + _bytes(2, encode(value))) for name, value in entries.items()
    )


def _any(value: Any) -> bytes:
    """A value of any type is a string of YAML; JSON is YAML too."""
    return _bytes(2, msgspec.json.encode(value) + b"\n")


def _extensions(field: int, node: Node) -> bytes:
    return _named(field, {name: value for name, value in node.items() if name.startswith("x-")}, _any)


# -- messages

_METHODS = {"get": 2, "put": 3, "post": 4, "delete": 5, "patch": 8}


def _path(node: Node) -> bytes:
    return b"".join(_bytes(_METHODS[method], _operation(operation)) for method, operation in node.items())


def _operation(node: Node) -> bytes:
    responses = _named(1, node["responses"], lambda response: _bytes(1, _string(1, response["description"])))
    return b"".join(
        (
            *(_string(7, media) for media in node.get("consumes", ())),
            *(_bytes(8, _parameter(parameter)) for parameter in node.get("parameters", ())),
            _bytes(9, responses),
            _extensions(13, node),
        )
    )


def _parameter(node: Node) -> bytes:
    query = _string(2, node["in"]) + _string(4, node["name"]) + _string(6, node["type"])
    return _bytes(1, _bytes(2, _bytes(3, query)))


def _strings(field: int) -> Callable[[Iterable[str]], bytes]:
    return lambda values: b"".join(_string(field, text) for text in values)


_SCHEMA: dict[str, Encode] = {
    "$ref": lambda value: _string(1, value),
    "format": lambda value: _string(2, value),
    "description": lambda value: _string(4, value),
    "default": lambda value: _bytes(5, _any(value)),
    "multipleOf": lambda value: _double(6, value),
    "maximum": lambda value: _double(7, value),
    "exclusiveMaximum": lambda value: _integer(8, value),
    "minimum": lambda value: _double(9, value),
    "exclusiveMinimum": lambda value: _integer(10, value),
    "maxLength": lambda value: _integer(11, value),
    "minLength": lambda value: _integer(12, value),
    "pattern": lambda value: _string(13, value),
    "maxItems": lambda value: _integer(14, value),
    "minItems": lambda value: _integer(15, value),
    "maxProperties": lambda value: _integer(17, value),
    "minProperties": lambda value: _integer(18, value),
    "required": _strings(19),
    "enum": lambda value: b"".join(_bytes(20, _any(item)) for item in value),
    "additionalProperties": lambda value: _bytes(21, _bytes(1, encode_schema(value))),
    "type": lambda value: _bytes(22, _string(1, value)),
    "items": lambda value: _bytes(23, _bytes(1, encode_schema(value))),
    "properties": lambda value: _bytes(25, _named(1, value, encode_schema)),
}


def encode_schema(node: Node) -> bytes:
    """A definition as a protobuf message."""
    known = b"".join(encode(node[name]) for name, encode in _SCHEMA.items() if name in node)
    return known + _extensions(31, node)
