"""Validation of objects by their schema, with Kubernetes' messages and the path of each field.

This is the slow path, taken when the fast one (`compiled_schema`) found something. Messages are those of the API server
for CRDs, or for built-in kinds those of its own validation.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from itertools import chain, islice
from typing import Any, NamedTuple

import msgspec

from stromboli.api.patterns import PatternError, matches
from stromboli.api.schemas.schema import Schema
from stromboli.api.schemas.value_formats import TEXT_FORMATS, in_range, type_name

MAX_PROBLEMS = 50
_MAX_SHOWN = 200
_MAX_KEY = 253

INVALID, REQUIRED, TYPE = "FieldValueInvalid", "FieldValueRequired", "FieldValueTypeInvalid"
UNSUPPORTED, DUPLICATE = "FieldValueNotSupported", "FieldValueDuplicate"
FORBIDDEN = "FieldValueForbidden"
TOO_LONG, TOO_MANY = "FieldValueTooLong", "FieldValueTooMany"
NOT_FOUND = "FieldValueNotFound"
VOLCANO = "Volcano"
"""Not a reason of Kubernetes: the message is Volcano's and names neither the field nor its value."""
SENTENCE = ""
"""Not a reason of Kubernetes: the message is a sentence that names the field itself."""


class Problem(NamedTuple):
    """A field that is invalid, as `field.Error` of Kubernetes."""

    field: str
    reason: str
    message: str
    remedy: str = ""
    """What to do about it; not part of the message, which is Kubernetes' or Volcano's."""
    value: Any = None
    """The value of the field, where the caller of the rules may ask for it."""
    shown_path: str = ""
    """The path with which the text begins, where Volcano writes that of the field in another way."""

    def __str__(self) -> str:
        path = "" if self.reason in (VOLCANO, SENTENCE) else self.shown_path or self.field
        return f"{path}: {self.message}" if path else self.message

    @property
    def with_remedy(self) -> str:
        """The text and, in parentheses, the remedy and what the text does not name."""
        more = []
        if self.reason == VOLCANO:
            more.append(self.field if self.value is None else f"{self.field}: {_summary(self.value)}")
        if self.remedy:
            more.append(self.remedy)
        text = str(self).strip(" ;")
        return f"{text} ({'; '.join(more)})" if more else text

    def cause(self) -> dict[str, str]:
        """As in the `details.causes` of a Status."""
        return {"reason": self.reason, "message": self.message, "field": self.field}


def invalid(field: str, value: Any, detail: str) -> Problem:
    return Problem(field, INVALID, f"Invalid value: {format_value(value)}: {detail}")


def required(field: str, detail: str = "") -> Problem:
    return Problem(field, REQUIRED, f"Required value: {detail}" if detail else "Required value")


def unsupported(field: str, value: Any, supported: tuple[Any, ...]) -> Problem:
    listed = ", ".join(format_value(item) for item in supported)
    return Problem(
        field, UNSUPPORTED, f"Unsupported value: {format_value(value)}: supported values: {listed}"
    )


def duplicate(field: str, value: Any) -> Problem:
    return Problem(field, DUPLICATE, f"Duplicate value: {format_value(value)}")


def forbidden(field: str, detail: str) -> Problem:
    return Problem(field, FORBIDDEN, f"Forbidden: {detail}")


def too_long(field: str, limit: int) -> Problem:
    return Problem(field, TOO_LONG, f"Too long: may not be more than {limit} bytes")


def not_found(field: str, value: Any, detail: str = "", remedy: str = "") -> Problem:
    text = f"Not found: {format_value(value)}"
    return Problem(field, NOT_FOUND, f"{text}: {detail}" if detail else text, remedy)


def sentence(message: str, field: str = "", remedy: str = "", value: Any = None) -> Problem:
    """A problem in a sentence that names the field itself, if it is about a field."""
    return Problem(field, SENTENCE, message, remedy, value)


def child_path(path: str, key: str) -> str:
    """The path of a key; one that nobody would read is cut, since the paths of everything below repeat it."""
    key = key if len(key) <= _MAX_KEY else key[:_MAX_KEY] + "..."
    return f"{path}.{key}" if path else key


def format_value(value: Any) -> str:
    """A value for a message, cut to a readable length."""
    if isinstance(value, int) and value.bit_length() > 256:
        return f"an integer of {value.bit_length()} bits"
    text = msgspec.json.encode(value).decode(errors="replace")
    return text if len(text) <= _MAX_SHOWN else text[:_MAX_SHOWN] + "..."


def _summary(value: Any) -> str:
    """A value, or the size of a map or list."""
    if isinstance(value, dict | list):
        return f"{len(value)} entries" if isinstance(value, dict) else f"a list of {len(value)}"
    return format_value(value)


def item_path(path: str, index: int) -> str:
    return f"{path}[{index}]"


def problems(value: Any, schema: Schema, path: str = "") -> list[Problem]:
    """What is wrong with a value; at most `MAX_PROBLEMS`."""
    return first_problems(_Validator(builtin=bool(schema.name)).check(value, schema, path))


def first_problems(*found: Iterable[Problem]) -> list[Problem]:
    """The first `MAX_PROBLEMS`: a large object may have very many, and nobody reads them."""
    return list(islice(chain(*found), MAX_PROBLEMS))


class _Validator:
    """Validates values, with the messages of built-in kinds or of CRDs."""

    def __init__(self, builtin: bool) -> None:
        self.builtin = builtin

    def check(self, value: Any, schema: Schema, path: str) -> Iterator[Problem]:
        if value is None and schema.nullable:
            return
        type_problem = self._type(value, schema, path)
        if type_problem is not None:
            yield type_problem
        elif isinstance(value, dict):
            yield from self._object(value, schema, path)
        elif isinstance(value, list):
            yield from self._list(value, schema, path)
        elif isinstance(value, str):
            yield from self._string(value, schema, path)
        elif isinstance(value, int | float) and not isinstance(value, bool):
            yield from self._number(value, schema, path)
        if schema.enum and value not in schema.enum:
            yield unsupported(path, value, schema.enum)
        if type_problem is None:
            yield from self._combined(value, schema, path)

    def _should(self, path: str, expected: str) -> str:
        return f"must be {expected}" if self.builtin else f"{path} in body should be {expected}"

    # -- types

    def _type(self, value: Any, schema: Schema, path: str) -> Problem | None:
        actual = type_name(value)
        if schema.int_or_string:
            fits, expected = actual in ("integer", "string"), "integer,string"
        else:
            fits, expected = _fits(value, actual, schema), schema.type
        if fits:
            return None
        return Problem(
            path, TYPE, f'Invalid value: "{actual}": {path} in body must be of type {expected}: "{actual}"'
        )

    # -- maps and lists

    def _object(self, value: dict[str, Any], schema: Schema, path: str) -> Iterator[Problem]:
        for key in schema.required:
            if key not in value or self._counts_as_missing(value[key], schema.child(key)):
                yield required(child_path(path, key))
        if schema.properties or schema.additional_properties:
            for key, item in value.items():
                inner = schema.properties.get(key) or schema.additional_properties
                is_missing = key in schema.required and self._counts_as_missing(item, schema.child(key))
                if inner is not None and not is_missing:
                    yield from self.check(item, inner, child_path(path, key))
        count = len(value)
        if schema.max_properties is not None and count > schema.max_properties:
            yield too_many(path, count, schema.max_properties)
        if schema.min_properties is not None and count < schema.min_properties:
            yield invalid(
                path, count, f"{path} in body should have at least {schema.min_properties} properties"
            )

    def _counts_as_missing(self, value: Any, schema: Schema) -> bool:
        """Built-in kinds want more than an empty text or list in a required field."""
        return self.builtin and (schema.type, value) in (("string", ""), ("array", []))

    def _list(self, value: list[Any], schema: Schema, path: str) -> Iterator[Problem]:
        count = len(value)
        if schema.max_items is not None and count > schema.max_items:
            yield too_many(path, count, schema.max_items)
        if schema.min_items is not None and count < schema.min_items:
            yield invalid(path, count, f"{path} in body should have at least {schema.min_items} items")
        if schema.unique_items:
            yield from duplicates(value, schema, path)
        if schema.items is not None:
            for index, item in enumerate(value):
                yield from self.check(item, schema.items, item_path(path, index))

    # -- scalars

    def _string(self, value: str, schema: Schema, path: str) -> Iterator[Problem]:
        if schema.max_length is not None and len(value) > schema.max_length:
            yield too_long(path, schema.max_length)
        if schema.min_length is not None and len(value) < schema.min_length:
            yield invalid(path, value, f"{path} in body should be at least {schema.min_length} chars long")
        if schema.pattern and (detail := _mismatch(schema.pattern, value, path)):
            yield invalid(path, value, detail)
        known = None if schema.int_or_string else TEXT_FORMATS.get(schema.format)
        if known is not None and not known(value):
            detail = f"{path} in body must be of type {schema.format}: {format_value(value)}"
            yield Problem(path, TYPE, f"Invalid value: {format_value(value)}: {detail}")

    def _number(self, value: int | float, schema: Schema, path: str) -> Iterator[Problem]:
        low, high = schema.minimum, schema.maximum
        below = low is not None and (value <= low if schema.exclusive_minimum else value < low)
        above = high is not None and (value >= high if schema.exclusive_maximum else value > high)
        if self.builtin and low is not None and high is not None and (below or above):
            yield invalid(path, value, f"must be between {_plain(low)} and {_plain(high)}, inclusive")
        elif below:
            equal = "" if schema.exclusive_minimum else " or equal to"
            yield invalid(path, value, self._should(path, f"greater than{equal} {_plain(low)}"))
        elif above:
            equal = "" if schema.exclusive_maximum else " or equal to"
            yield invalid(path, value, self._should(path, f"less than{equal} {_plain(high)}"))
        if schema.multiple_of and not _is_multiple(value, schema.multiple_of):
            yield invalid(path, value, self._should(path, f"a multiple of {schema.multiple_of:g}"))
        if schema.type == "integer" and not in_range(int(value), schema.format):
            yield invalid(path, value, f"must be of type integer with format {schema.format or 'int64'}")

    # -- combined schemas

    def _combined(self, value: Any, schema: Schema, path: str) -> Iterator[Problem]:
        for part in schema.all_of:
            yield from self.check(value, part, path)
        if schema.any_of and not any(self._is_valid(value, part, path) for part in schema.any_of):
            yield invalid(path, value, f'"{path}" must validate at least one schema (anyOf)')
        if schema.one_of:
            count = sum(self._is_valid(value, part, path) for part in schema.one_of)
            if count != 1:
                detail = f'"{path}" must validate one and only one schema (oneOf). Found {count} valid alternatives'
                yield invalid(path, value, detail)
        if schema.none_of is not None and self._is_valid(value, schema.none_of, path):
            yield invalid(path, value, f'"{path}" must not validate the schema (not)')

    def _is_valid(self, value: Any, schema: Schema, path: str) -> bool:
        return next(self.check(value, schema, path), None) is None


def _mismatch(pattern: str, value: str, path: str) -> str:
    """Why a text does not match; empty if it does."""
    try:
        return "" if matches(pattern, value) else f"{path} in body should match '{pattern}'"
    except PatternError as error:
        return f"{path} in body cannot be matched: {error}"


def _plain(limit: float | None) -> str:
    return str(int(limit)) if limit is not None and limit == int(limit) else f"{limit:g}"


def _fits(value: Any, actual: str, schema: Schema) -> bool:
    expected = schema.type
    if not expected or actual == expected:
        return True
    if expected == "number":
        return actual == "integer"
    if expected == "integer":
        return actual == "number" and math.isfinite(value) and value == int(value)
    return schema.format == "quantity" and actual in ("integer", "number")


def _is_multiple(value: int | float, step: float) -> bool:
    if isinstance(value, int) and step == int(step):
        return value % int(step) == 0
    ratio = value / step
    return math.isfinite(ratio) and abs(ratio - round(ratio)) < 1e-9


def too_many(path: str, count: int, limit: int) -> Problem:
    items = "item" if limit == 1 else "items"
    return Problem(path, TOO_MANY, f"Too many: {count}: must have at most {limit} {items}")


def duplicates(values: list[Any], schema: Schema, path: str) -> Iterator[Problem]:
    """Items that occur before, by their keys or, in a set, by their value."""
    seen: set[bytes] = set()
    for index, value in enumerate(values):
        identity = value
        if schema.list_map_keys and isinstance(value, dict):
            identity = {key: value[key] for key in schema.list_map_keys if key in value}
        text = msgspec.json.encode(identity, order="deterministic")
        if text in seen:
            yield duplicate(item_path(path, index), identity)
        seen.add(text)
