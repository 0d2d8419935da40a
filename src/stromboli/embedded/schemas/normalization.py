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


def normalize(content: Content, schema: Schema) -> ValidationResult:
    """Prune the object, set its defaults and validate it. The object is changed in place."""
    if compiled(schema)(content):
        return VALID
    unknown = prune(content, schema)
    default(content, schema)
    return ValidationResult(unknown, problems(content, schema))


def prune(node: Any, schema: Schema) -> list[str]:
    """Take out, in place, fields that the schema does not know, and nulls where there can be none.

    Returns the paths of the unknown fields. Numbers that stand for quantities become texts. In built-in kinds, an
    empty text where one of several words is wanted is as good as nothing.
    """
    return list(_pruned(node, schema, "", bool(schema.name)))


def _pruned(node: Any, schema: Schema, path: str, builtin: bool) -> Iterator[str]:
    if isinstance(node, dict):
        for key in list(node):
            inner = schema.properties.get(key) or schema.additional
            where = f"{path}.{key}" if path else key
            value = node[key]
            if inner is None:
                if not schema.open and schema.type == "object":
                    del node[key]
                    yield where
            elif (value is None and not inner.nullable and inner.type) or (
                builtin and value == "" and inner.enum
            ):
                del node[key]
            elif (
                inner.format == "quantity" and isinstance(value, int | float) and not isinstance(value, bool)
            ):
                node[key] = str(value)
            else:
                yield from _pruned(value, inner, where, builtin)
    elif isinstance(node, list) and schema.items is not None:
        for place, value in enumerate(node):
            yield from _pruned(value, schema.items, f"{path}[{place}]", builtin)


def default(node: Any, schema: Schema) -> None:
    """Set, in place, what is not given and has a default."""
    if isinstance(node, dict):
        for key, inner in schema.properties.items():
            if inner.default is not msgspec.UNSET and key not in node:
                node[key] = msgspec.json.decode(msgspec.json.encode(inner.default))
        if schema.properties or schema.additional:
            for key, value in node.items():
                default(value, schema.child(key))
    elif isinstance(node, list) and schema.items is not None:
        for value in node:
            default(value, schema.items)
