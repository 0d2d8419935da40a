"""Columns that a CustomResourceDefinition asks for (`additionalPrinterColumns`)."""

from __future__ import annotations

import json
from typing import Any

from stromboli.embedded.tables.age_text import ago, instant
from stromboli.embedded.tables.jsonpath import BadPath, find
from stromboli.embedded.tables.table_printer import INVALID, Cells, Column, Content, TablePrinter, name_of

_TYPES: dict[str, tuple[type, ...]] = {"integer": (int,), "number": (int, float), "boolean": (bool,)}


def crd_printer(wanted: list[Content] | None) -> TablePrinter:
    """The layout of a custom kind: its name, then what it asks for; its age where it asks for nothing."""
    asked = wanted or [{"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}]
    heads = tuple(
        Column(
            str(column.get("name", "")),
            str(column.get("type", "string")),
            str(column.get("format", "")),
            int(column.get("priority") or 0),
            str(column.get("description", "")),
        )
        for column in asked
    )
    paths = [str(column.get("jsonPath", "")) for column in asked]

    def fill(thing: Content, now: float) -> Cells:
        return [
            name_of(thing),
            *(_cell(thing, path, head, now) for path, head in zip(paths, heads, strict=True)),
        ]

    return TablePrinter((Column("Name", format="name"), *heads), fill)


def _cell(thing: Content, path: str, column: Column, now: float) -> Any:
    """One value in the type that the column has; nothing where there is none."""
    try:
        found = find(path, thing)
    except BadPath:
        return INVALID
    if not found:
        return None
    value = found[0]
    if column.type == "date":
        return ago(value, now) if instant(value) is not None else INVALID
    if column.type in _TYPES:
        fits = isinstance(value, _TYPES[column.type])
        return value if fits and isinstance(value, bool) == (column.type == "boolean") else None
    if len(found) > 1:
        return ",".join(map(_text, found))
    return _text(value)


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, dict | list):
        return json.dumps(value, separators=(",", ":"), ensure_ascii=False)
    return str(value)
