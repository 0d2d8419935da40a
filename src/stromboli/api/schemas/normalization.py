"""Pruning, defaulting and validation of objects by their schema."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import msgspec

from stromboli.api.patterns import matching
from stromboli.api.schemas.compiled_schema import compiled
from stromboli.api.schemas.schema import Schema
from stromboli.api.schemas.schema_problems import Problem, child_path, problems

Content = dict[str, Any]


class ValidationResult(NamedTuple):
    """Unknown fields, which were pruned, and what is wrong with the rest."""

    unknown: list[str]
    problems: list[Problem]


MAX_UNKNOWN = 1_000
"""Unknown fields whose paths are kept."""
VALID = ValidationResult([], [])


def normalize(content: Any, schema: Schema, path: str = "") -> ValidationResult:
    """Prune the object, set its defaults and validate it. The object, which lies at `path`, is changed in place."""
    with matching():
        if compiled(schema)(content):
            return VALID
    unknown = prune(content, schema, path)
    with matching():
        if compiled(schema)(content):  # nearly always only nulls and unknown fields were in the way
            return ValidationResult(unknown, [])
    default(content, schema)
    with matching():
        return ValidationResult(unknown, problems(content, schema, path))


def prune(node: Any, schema: Schema, path: str = "") -> list[str]:
    """Remove, in place, fields without a schema, and nulls that are not nullable.

    Returns the paths of the unknown fields; those beyond `MAX_UNKNOWN` are only counted, as dots. Quantities that are
    numbers become strings. In built-in kinds, an empty string of an enum is removed too.
    """
    unknown: list[str] = []
    for found in _pruned(node, schema, path, bool(schema.name)):
        unknown.append(found if len(unknown) < MAX_UNKNOWN else "...")
    return unknown


def _pruned(node: Any, schema: Schema, path: str, builtin: bool) -> Iterator[str]:
    if isinstance(node, dict):
        for key in list(node):
            inner = schema.properties.get(key) or schema.additional_properties
            value = node[key]
            if inner is None:
                if not schema.preserve_unknown_fields and schema.type == "object":
                    del node[key]
                    yield child_path(path, key)
            elif (value is None and not inner.nullable and (inner.type or not builtin)) or (
                builtin and value == "" and inner.enum
            ):
                del node[key]
            elif (
                inner.format == "quantity" and isinstance(value, int | float) and not isinstance(value, bool)
            ):
                node[key] = str(value)
            elif isinstance(value, dict | list):
                yield from _pruned(value, inner, child_path(path, key), builtin)
    elif isinstance(node, list) and schema.items is not None:
        for index, value in enumerate(node):
            yield from _pruned(value, schema.items, f"{path}[{index}]", builtin)


def default(node: Any, schema: Schema) -> None:
    """Set, in place, missing fields that have a default."""
    if isinstance(node, dict):
        for key, inner in schema.properties.items():
            if inner.default is not msgspec.UNSET and key not in node:
                node[key] = msgspec.json.decode(msgspec.json.encode(inner.default))
        if schema.properties or schema.additional_properties:
            for key, value in node.items():
                default(value, schema.child(key))
    elif isinstance(node, list) and schema.items is not None:
        for value in node:
            default(value, schema.items)
