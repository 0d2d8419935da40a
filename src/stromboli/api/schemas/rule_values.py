"""Values of custom objects as validation rules see them: typed by the schema, without what has none."""

from __future__ import annotations

import base64
import re
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

from stromboli.api.cel.expression import Paths
from stromboli.api.cel.values import Duration, Timestamp
from stromboli.api.go_scalars import duration
from stromboli.api.schemas.schema import Schema

_KEYWORDS = (
    "true false null in as break const continue else for function if import let loop package namespace return"
)
_RESERVED = frozenset([*_KEYWORDS.split(), "var", "void", "while"])
_SEQUENCES = {"__": "__underscores__", ".": "__dot__", "-": "__dash__", "/": "__slash__"}
_ESCAPED = re.compile(r"__|[-./]")
_ESCAPABLE = re.compile(r"[A-Za-z_./-][A-Za-z0-9_./-]*")
_METADATA = ("name", "generateName")
"""What rules see of the metadata of an object."""


_CLASSES: dict[str, Any] = {
    "object": dict,
    "array": list,
    "string": str,
    "number": int | float,
    "integer": int | float,
    "boolean": bool,
}


class UnreadableValue(ValueError):
    """A value that is not of its type or format, as an old one may be whose schema was another."""


@lru_cache(4096)
def identifiers(name: str) -> tuple[str, ...]:
    """What a field is called in rules: escaped, and as it is if it is a keyword; nothing if it cannot be escaped."""
    if name in _RESERVED:
        return f"__{name}__", name
    if not _ESCAPABLE.fullmatch(name):
        return ()
    return (_ESCAPED.sub(lambda match: _SEQUENCES[match[0]], name),)


def is_visible(schema: Schema) -> bool:
    """Whether rules see values of this schema: those without a type they do not."""
    if schema.int_or_string:
        return True
    if schema.type == "array":
        return schema.items is not None and is_visible(schema.items)
    if schema.type == "object" and schema.additional_properties is not None:
        return is_visible(schema.additional_properties)
    return bool(schema.type)


def rule_value(value: Any, schema: Schema, paths: Paths = None, is_root: bool = False) -> Any:
    """A value with numbers, bytes, times and the names of fields as CEL has them; of objects, these paths."""
    if value is None or schema.int_or_string:
        return value
    if schema.type and not isinstance(value, _CLASSES[schema.type]):
        raise UnreadableValue(f"invalid data, expected a value of type {schema.type}")
    match schema.type:
        case "object":
            return _object(value, schema, paths, is_root or schema.embedded_resource)
        case "array":
            return [rule_value(item, schema.element) for item in value]
        case "number":
            return _number(value)
        case "integer":
            return int(value)
        case "string":
            return _text(value, schema.format)
    return value


def _object(value: dict[str, Any], schema: Schema, paths: Paths, is_root: bool) -> dict[str, Any]:
    """For rules, as on a real API server, a field that is null is absent; a value of a map or an item is null."""
    values = schema.additional_properties
    if values is not None:
        used = value if paths is None else value.keys() & paths.keys()
        return {key: rule_value(value[key], values, _below(paths, key)) for key in used}
    result = {}
    for key, item in value.items():
        inner = schema.properties.get(key)
        names = [name for name in identifiers(key) if paths is None or name in paths]
        if not names or item is None:
            continue
        if is_root and key == "metadata" and isinstance(item, dict):
            result[key] = {name: item[name] for name in _METADATA if name in item}
        elif inner is not None and is_visible(inner):
            result |= {name: rule_value(item, inner, _below(paths, name)) for name in names}
    return result


def _below(paths: Paths, key: str) -> Paths:
    return None if paths is None else paths[key]


def _number(value: int | float) -> float:
    try:
        return float(value)
    except OverflowError:
        raise UnreadableValue("invalid data, a number is out of range") from None


def _text(text: str, format: str) -> Any:
    try:
        match format:
            case "byte":
                return base64.b64decode(text, validate=True)
            case "date-time" | "datetime":
                moment = datetime.fromisoformat(_without_fraction(text)).astimezone(UTC)
                return Timestamp.at(moment, _nanoseconds(text))
            case "date":
                return Timestamp.at(datetime.strptime(text, "%Y-%m-%d").replace(tzinfo=UTC))
            case "duration":
                seconds = duration(text)
                if seconds is None or abs(seconds) * 10**9 >= 2**63:
                    raise ValueError
                return Duration(round(seconds * 10**9))
    except (ValueError, OverflowError):
        raise UnreadableValue(f"{text[:100]!r} is no {format}") from None
    return text


def _without_fraction(text: str) -> str:
    return re.sub(r"\.[0-9]+", "", text.upper().replace(" ", "T"))


def _nanoseconds(text: str) -> int:
    fraction = re.search(r"\.([0-9]{1,9})", text)
    return int(fraction[1].ljust(9, "0")) if fraction else 0
