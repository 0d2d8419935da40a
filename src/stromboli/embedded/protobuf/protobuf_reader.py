"""Decodes protobuf to the object that the equivalent JSON has."""

from __future__ import annotations

import base64
import struct
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from stromboli.embedded.protobuf.message_table import Field, messages

MEDIA = "application/vnd.kubernetes.protobuf"
MAGIC = b"k8s\x00"
MAX_DEPTH = 50
MAX_FIELDS = 50_000
"""Fields of a message and of those in it, whether known or not: reading one takes some microseconds."""
MAX_RAW = 100_000
"""Bytes of JSON inside a message, in all."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
Value = int | bytes
Fields = dict[int, Value]


class BadMessage(ValueError):
    """Malformed bytes, or a message of an unknown type."""


class _Budget:
    """How many fields, and bytes of JSON inside, may still be read."""

    def __init__(self) -> None:
        self.left = MAX_FIELDS
        self.raw = MAX_RAW


def read(data: bytes) -> dict[str, Any]:
    """An object from its envelope (`runtime.Unknown`), which has its kind."""
    if not data.startswith(MAGIC):
        raise BadMessage("the body does not begin as Kubernetes' protobuf does")
    budget = _Budget()
    envelope = dict(_fields(memoryview(data)[len(MAGIC) :], budget))
    type_meta = dict(_fields(memoryview(_bytes(envelope.get(1, b""))), budget))
    version, kind = _text(type_meta.get(1, b"")), _text(type_meta.get(2, b""))
    name = messages().roots.get((version, kind))
    if name is None and kind == "DeleteOptions":
        name = "DeleteOptions"
    if name is None:
        raise BadMessage(f"{kind[:100]} in version {version[:100]} cannot be read from protobuf; send JSON")
    content = _message(memoryview(_bytes(envelope.get(2, b""))), name, 0, budget)
    return {"apiVersion": version, "kind": kind, **content}


def _fields(data: memoryview, budget: _Budget) -> Iterator[tuple[int, Value]]:
    """Field numbers and raw values, in order."""
    position = 0
    while position < len(data):
        budget.left -= 1
        if budget.left < 0:
            raise BadMessage(f"protobuf: more than {MAX_FIELDS} fields; divide them among several objects")
        tag, position = _varint(data, position)
        number, wire = tag >> 3, tag & 7
        if wire == 0:
            value, position = _varint(data, position)
            yield number, value
            continue
        if wire == 2:
            size, position = _varint(data, position)
        elif wire in (1, 5):
            size = 8 if wire == 1 else 4
        else:
            raise BadMessage(f"protobuf: wire type {wire}")
        if size > len(data) - position:
            raise BadMessage("protobuf: the message ends too early")
        yield number, bytes(data[position : position + size])
        position += size


def _varint(data: memoryview, position: int) -> tuple[int, int]:
    value = shift = 0
    while position < len(data) and shift < 70:
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
        shift += 7
    raise BadMessage("protobuf: a number has no end")


def _message(data: memoryview, name: str, depth: int, budget: _Budget) -> dict[str, Any]:
    if depth > MAX_DEPTH:
        raise BadMessage(f"protobuf: nested deeper than {MAX_DEPTH} levels")
    fields, content = messages().fields[name], dict[str, Any]()
    for number, raw in _fields(data, budget):
        field = fields.get(number)
        if field is not None:
            _put(content, field, raw, depth, budget)
    return content


def _put(content: dict[str, Any], field: Field, raw: Value, depth: int, budget: _Budget) -> None:
    if field.mapped:
        entry = dict(_fields(memoryview(_bytes(raw)), budget))
        entry_value = entry.get(2, b"" if field.type != "i" else 0)
        values = content.setdefault(field.name, {})
        if field.repeated:
            value = [_text(item) for _, item in _fields(memoryview(_bytes(entry_value)), budget)]
        else:
            value = _value(field.type, entry_value, depth, budget)
        values[_text(entry.get(1, b""))] = value
    elif field.repeated:
        content.setdefault(field.name, []).append(_value(field.type, raw, depth, budget))
    elif field.name == "-":
        content.update(_value(field.type, raw, depth, budget))
    else:
        value = _value(field.type, raw, depth, budget)
        if field.keeps_zero or value not in ("", 0, None, {}):
            content[field.name] = value


def _value(kind: str, raw: Value, depth: int, budget: _Budget) -> Any:
    if (scalar := _SCALARS.get(kind)) is not None:
        return scalar(raw)
    if kind == "raw":
        return _raw(dict(_fields(memoryview(_bytes(raw)), budget)), budget)
    if (composed := _COMPOSED.get(kind)) is not None:
        return composed(dict(_fields(memoryview(_bytes(raw)), budget)))
    content = _message(memoryview(_bytes(raw)), kind, depth + 1, budget)
    return next(reversed(content.values()), None) if kind in messages().unions else content


def _bytes(raw: Value) -> bytes:
    if isinstance(raw, int):
        raise BadMessage("protobuf: a number where a message should be")
    return raw


def _text(raw: Value) -> str:
    try:
        return _bytes(raw).decode()
    except UnicodeDecodeError:
        raise BadMessage("protobuf: text that is not UTF-8") from None


def _number(raw: Value) -> int:
    if not isinstance(raw, int):
        raise BadMessage("protobuf: a message where a number should be")
    raw &= 0xFFFF_FFFF_FFFF_FFFF
    return raw - (1 << 64) if raw >> 63 else raw


def _float(raw: Value) -> float | int:
    data = _bytes(raw)
    if len(data) not in (4, 8):
        raise BadMessage("protobuf: a fraction of an odd size")
    value: float = struct.unpack("<d" if len(data) == 8 else "<f", data)[0]
    return int(value) if value.is_integer() else value  # as Go writes it in JSON


def _time(fields: Fields, micro: bool = False) -> str | None:
    seconds, nanoseconds = _number(fields.get(1, 0)), _number(fields.get(2, 0))
    if not seconds and not nanoseconds:
        return None
    try:
        text = f"{_EPOCH + timedelta(seconds=seconds):%Y-%m-%dT%H:%M:%S}"
    except OverflowError:
        raise BadMessage("protobuf: a time that no calendar has") from None
    return f"{text}.{nanoseconds // 1000:06d}Z" if micro else f"{text}Z"


def _first(fields: Fields) -> bytes:
    return _bytes(fields.get(1, b""))


def _raw(fields: Fields, budget: _Budget) -> Any:
    data = _first(fields)
    budget.raw -= len(data)
    if budget.raw < 0:
        raise BadMessage(f"protobuf: more than {MAX_RAW} bytes of JSON inside; send JSON")
    try:
        return msgspec.json.decode(data) if data else None
    except (ValueError, RecursionError):
        raise BadMessage("protobuf: JSON inside that is none") from None


def _int_or_string(fields: Fields) -> int | str:
    return _text(fields.get(3, b"")) if fields.get(1) else _number(fields.get(2, 0))


def _duration(fields: Fields) -> str:
    return f"{_number(fields.get(1, 0)) / 1e9:g}s"


_SCALARS: dict[str, Callable[[Value], Any]] = {
    "s": _text,
    "i": _number,
    "b": lambda raw: bool(_number(raw)),
    "f": _float,
    "bytes": lambda raw: base64.b64encode(_bytes(raw)).decode(),
}
_COMPOSED: dict[str, Callable[[Fields], Any]] = {
    "time": _time,
    "microtime": lambda fields: _time(fields, micro=True),
    "duration": _duration,
    "quantity": lambda fields: _first(fields).decode(errors="replace"),
    "intstr": _int_or_string,
}
"""Messages that are one value in JSON."""
