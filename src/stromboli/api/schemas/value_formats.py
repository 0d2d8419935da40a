"""JSON values: formats of strings and integers, type names, equality."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable
from datetime import datetime
from functools import lru_cache
from typing import Any

from stromboli.api.resources.quantity import QuantityError, exact

_TIME = re.compile(r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)", re.ASCII)
_RANGES = {"int32": 2**31, "int64": 2**63}
_TYPE_NAMES = {
    type(None): "null",
    bool: "boolean",
    int: "integer",
    float: "number",
    str: "string",
    list: "array",
}


@lru_cache(maxsize=4096)
def is_time(text: str) -> bool:
    """Whether this is an RFC 3339 time."""
    if not _TIME.fullmatch(text):
        return False
    try:
        datetime.fromisoformat(text[:19].upper().replace(" ", "T"))
    except ValueError:
        return False
    return True


@lru_cache(maxsize=16384)
def is_quantity(text: str) -> bool:
    try:
        exact(text)
    except QuantityError:
        return False
    return True


def is_base64(text: str) -> bool:
    try:
        base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return False
    return True


TEXT_FORMATS: dict[str, Callable[[str], bool]] = {
    "byte": is_base64,
    "date-time": is_time,
    "datetime": is_time,
    "quantity": is_quantity,
}
"""Formats of strings that are validated; others are documentation."""


def in_range(number: int, format: str) -> bool:
    """Whether an integer fits its format; without one, 64 bits."""
    limit = _RANGES.get(format, 2**63)
    return -limit <= number < limit


def type_name(value: Any) -> str:
    """The JSON type of a value."""
    return _TYPE_NAMES.get(type(value), "object")


def json_equal(left: Any, right: Any) -> bool:
    """Equality of JSON values: true is not 1."""
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(
            json_equal(value, right[key]) for key, value in left.items()
        )
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(json_equal, left, right))
    return bool(left == right)
