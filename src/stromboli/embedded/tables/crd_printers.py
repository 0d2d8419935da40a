"""Printers of custom kinds, from their `additionalPrinterColumns`."""

from __future__ import annotations

import json
from typing import Any

from stromboli.embedded.tables.age_text import ago, instant
from stromboli.embedded.tables.jsonpath import BadPath, find
from stromboli.embedded.tables.table_printer import INVALID, Cells, Column, Content, TablePrinter, name_of

_TYPES: dict[str, tuple[type, ...]] = {"integer": (int,), "number": (int, float), "boolean": (bool,)}


def crd_printer(printer_columns: list[Content] | None) -> TablePrinter:
    """A printer of the name and these columns; without any, of the name and the age."""
    definitions = printer_columns or [
        {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}
    ]
    columns = tuple(
        Column(
            str(definition.get("name", "")),
            str(definition.get("type", "string")),
            str(definition.get("format", "")),
            int(definition.get("priority") or 0),
            str(definition.get("description", "")),
        )
        for definition in definitions
    )
    paths = [str(definition.get("jsonPath", "")) for definition in definitions]

    def print_row(content: Content, now: float) -> Cells:
        return [
            name_of(content),
            *(_cell(content, path, column, now) for path, column in zip(paths, columns, strict=True)),
        ]

    return TablePrinter((Column("Name", format="name"), *columns), print_row)


def _cell(content: Content, path: str, column: Column, now: float) -> Any:
    """The value in the type of the column; None without one."""
    try:
        values = find(path, content)
    except BadPath:
        return INVALID
    if not values:
        return None
    value = values[0]
    if column.type == "date":
        return ago(value, now) if instant(value) is not None else INVALID
    if column.type in _TYPES:
        fits = isinstance(value, _TYPES[column.type])
        return value if fits and isinstance(value, bool) == (column.type == "boolean") else None
    if len(values) > 1:
        return ",".join(map(_text, values))
    return _text(value)


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, dict | list):
        return json.dumps(value, separators=(",", ":"), ensure_ascii=False)
    return str(value)
