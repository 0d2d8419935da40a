"""Schemas compiled into closures that set defaults and decide whether a value is valid: the fast path.

Almost all objects are valid. For them one walk is enough: it sets defaults and returns True. It returns False at the
first problem, unknown field or null, and then `normalization` takes the slow path. Tests compare both.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import msgspec
from msgspec import UNSET

from stromboli.api.patterns import PatternError, matches
from stromboli.api.schemas.schema import Schema
from stromboli.api.schemas.schema_problems import duplicates, problems
from stromboli.api.schemas.value_formats import TEXT_FORMATS, in_range

Check = Callable[[Any], bool]

_PLAIN = {"string": str, "boolean": bool}


@lru_cache(maxsize=16384)
def compiled(schema: Schema) -> Check:
    """The check of a value; kinds that share a type share its check."""
    if schema.all_of or schema.any_of or schema.one_of or schema.none_of:
        return _combined(schema)
    if schema.nullable:
        inner_check = compiled(msgspec.structs.replace(schema, nullable=False))
        return lambda value: value is None or inner_check(value)
    return _typed(schema)


def _typed(schema: Schema) -> Check:
    if schema.int_or_string:
        return _int_or_string(schema)
    match schema.type:
        case "object":
            return _object(schema)
        case "array":
            return _list(schema)
        case "string":
            return _string(schema)
        case "integer":
            return _integer(schema)
        case "boolean":
            return lambda value: value is True or value is False
        case "number":
            return lambda value: type(value) in (int, float) and not problems(value, schema)
    return _object(schema) if schema.properties else _untyped(schema)


def _untyped(schema: Schema) -> Check:
    """A value of any type; limits apply to values of the type that they are made for."""
    text = _string(schema)
    return lambda value: (
        text(value) if type(value) is str else value is not None and not problems(value, schema)
    )


def _combined(schema: Schema) -> Check:
    """Combined schemas are rare and validated the slow way; defaults are still set by the compiled check."""
    inner = msgspec.structs.replace(schema, all_of=(), any_of=(), one_of=(), none_of=None)
    inner_check = compiled(inner)
    return lambda value: inner_check(value) and not problems(value, schema)


def _object(schema: Schema) -> Check:
    plain = {key: _PLAIN[property.type] for key, property in schema.properties.items() if _is_plain(property)}
    checks = {key: compiled(property) for key, property in schema.properties.items() if key not in plain}
    defaulted = {key: _default(each) for key, each in schema.properties.items() if each.default is not UNSET}
    defaults = [(key, factory) for key, factory in defaulted.items() if factory is not None]
    incomplete = [key for key, factory in defaulted.items() if factory is None]
    others = _values(schema)
    required = schema.required
    minimum, maximum = schema.min_properties or 0, schema.max_properties

    def check(value: Any) -> bool:
        if type(value) is not dict:
            return False
        for key, item in value.items():
            expected = plain.get(key)
            if expected is not None:
                if type(item) is not expected:
                    return False
                continue
            inner_check = checks.get(key, others)
            if inner_check is None or not inner_check(item):
                return False
        for key, factory in defaults:
            if key not in value:
                value[key] = factory()
        for key in incomplete:
            if key not in value:
                return False
        for key in required:
            item = value.get(key)
            if not item and (item is None or item in ("", [])):
                return False
        return minimum <= len(value) and (maximum is None or len(value) <= maximum)

    return check if schema.properties or others is None else _map(schema, others)


def _map(schema: Schema, inner_check: Check) -> Check:
    """A map: only its values have a schema."""
    values = schema.additional_properties
    strings = values is not None and _is_plain(values) and values.type == "string"
    required = schema.required
    minimum, maximum = schema.min_properties or 0, schema.max_properties

    def check(value: Any) -> bool:
        if type(value) is not dict:
            return False
        for item in value.values():
            if type(item) is not str if strings else not inner_check(item):
                return False
        for key in required:
            if key not in value:
                return False
        return minimum <= len(value) and (maximum is None or len(value) <= maximum)

    return check


def _values(schema: Schema) -> Check | None:
    """The check of other fields than the properties; None if there must be none."""
    if schema.additional_properties is not None:
        return compiled(schema.additional_properties)
    return _accept if schema.preserve_unknown_fields else None


def _accept(_: Any) -> bool:
    return True


def _is_plain(schema: Schema) -> bool:
    """Whether a value is valid if it has the Python type."""
    limited = schema.enum or schema.pattern or schema.min_length is not None or schema.max_length is not None
    combined = schema.all_of or schema.any_of or schema.one_of or schema.none_of is not None
    special = schema.nullable or schema.int_or_string or schema.format in TEXT_FORMATS
    return schema.type in _PLAIN and not (limited or combined or special)


def _default(schema: Schema) -> Callable[[], Any] | None:
    """What makes a default; None if it lacks required fields."""
    value = msgspec.json.decode(msgspec.json.encode(schema.default))
    if not compiled(schema)(value) and isinstance(value, dict):
        return None
    if not isinstance(value, dict | list):
        return lambda: value
    if not value:
        return type(value)
    encoded = msgspec.json.encode(value)
    return lambda: msgspec.json.decode(encoded)


def _list(schema: Schema) -> Check:
    inner_check = compiled(schema.items) if schema.items is not None else _accept
    minimum, maximum = schema.min_items or 0, schema.max_items
    unique = schema.unique_items

    def check(value: Any) -> bool:
        if type(value) is not list:
            return False
        for item in value:
            if not inner_check(item):
                return False
        count = len(value)
        if unique and count > 1 and any(duplicates(value, schema, "")):
            return False
        return minimum <= count and (maximum is None or count <= maximum)

    return check


def _string(schema: Schema) -> Check:
    if schema.enum:
        values = frozenset(text for text in schema.enum if isinstance(text, str))
        return lambda value: type(value) is str and value in values
    known: Check = TEXT_FORMATS.get(schema.format, _accept)
    minimum, maximum, pattern = schema.min_length or 0, schema.max_length, schema.pattern
    if not (minimum or maximum is not None or pattern):
        return lambda value: type(value) is str and known(value)

    def check(value: Any) -> bool:
        if type(value) is not str or len(value) < minimum or (maximum is not None and len(value) > maximum):
            return False
        return (not pattern or _matches(pattern, value)) and known(value)

    return check


def _integer(schema: Schema) -> Check:
    if schema.enum or schema.multiple_of or schema.exclusive_minimum or schema.exclusive_maximum:
        return lambda value: type(value) is int and not problems(value, schema)
    bound = 2**31 if schema.format == "int32" else 2**63
    low = -bound if schema.minimum is None else max(-bound, schema.minimum)
    high = bound - 1 if schema.maximum is None else min(bound - 1, schema.maximum)
    return lambda value: type(value) is int and low <= value <= high


def _int_or_string(schema: Schema) -> Check:
    def check(value: Any) -> bool:
        if type(value) is str:
            return not schema.pattern or _matches(schema.pattern, value)
        return type(value) is int and in_range(value, "") and not problems(value, schema)

    return check


def _matches(pattern: str, text: str) -> bool:
    try:
        return matches(pattern, text)
    except PatternError:
        return False
