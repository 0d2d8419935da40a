"""Pruning, defaulting and validation of objects by their schema."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import msgspec

from stromboli.embedded.schemas.compiled_schema import compiled
from stromboli.embedded.schemas.schema import Schema
from stromboli.embedded.schemas.schema_problems import Problem, problems

Content = dict[str, Any]


class ValidationResult(NamedTuple):
    """Unknown fields, which were pruned, and what is wrong with the rest."""

    unknown: list[str]
    problems: list[Problem]


VALID = ValidationResult([], [])


def normalize(thing: Content, schema: Schema) -> ValidationResult:
    """Prune the object, set its defaults and validate it. The object is changed in place."""
    if compiled(schema)(thing):
        return VALID
    unknown = prune(thing, schema)
    default(thing, schema)
    return ValidationResult(unknown, problems(thing, schema))


def prune(thing: Any, schema: Schema) -> list[str]:
    """Take out, in place, fields that the schema does not know, and nulls where there can be none.

    Returns the paths of the unknown fields. Numbers that stand for quantities become texts. In built-in kinds, an
    empty text where one of several words is wanted is as good as nothing.
    """
    return list(_pruned(thing, schema, "", bool(schema.name)))


def _pruned(thing: Any, schema: Schema, path: str, builtin: bool) -> Iterator[str]:
    if isinstance(thing, dict):
        for key in list(thing):
            inner = schema.properties.get(key) or schema.additional
            where = f"{path}.{key}" if path else key
            value = thing[key]
            if inner is None:
                if not schema.open and schema.type == "object":
                    del thing[key]
                    yield where
            elif (value is None and not inner.nullable and inner.type) or (
                builtin and value == "" and inner.enum
            ):
                del thing[key]
            elif (
                inner.format == "quantity" and isinstance(value, int | float) and not isinstance(value, bool)
            ):
                thing[key] = str(value)
            else:
                yield from _pruned(value, inner, where, builtin)
    elif isinstance(thing, list) and schema.items is not None:
        for place, value in enumerate(thing):
            yield from _pruned(value, schema.items, f"{path}[{place}]", builtin)


def default(thing: Any, schema: Schema) -> None:
    """Set, in place, what is not given and has a default."""
    if isinstance(thing, dict):
        for key, inner in schema.properties.items():
            if inner.default is not msgspec.UNSET and key not in thing:
                thing[key] = msgspec.json.decode(msgspec.json.encode(inner.default))
        if schema.properties or schema.additional:
            for key, value in thing.items():
                default(value, schema.child(key))
    elif isinstance(thing, list) and schema.items is not None:
        for value in thing:
            default(value, schema.items)
