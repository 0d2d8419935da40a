"""Table printers: the columns of a kind, and the function that prints a row of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import msgspec

from stromboli.embedded.tables.age_text import INVALID, UNKNOWN, age

__all__ = (
    "AGES",
    "CREATION_TIMES",
    "INVALID",
    "NONE",
    "UNKNOWN",
    "UNSET",
    "Cells",
    "Column",
    "Content",
    "PrintRow",
    "TablePrinter",
    "cell_printer",
    "condition",
    "count_printer",
    "field_printer",
    "format_labels",
    "format_list",
    "name_of",
    "nested_map",
    "printer",
    "selector_text",
)

Content = dict[str, Any]
"""An object as plain JSON."""
Cells = list[Any]
PrintRow = Callable[[Content, float], Cells]
"""The cells of an object at a time in seconds."""

NONE = "<none>"
UNSET = "<unset>"


class Column(msgspec.Struct, frozen=True):
    """A column definition of a Table; columns of priority 1 appear with `-o wide` only."""

    name: str
    type: str = "string"
    format: str = ""
    priority: int = 0
    description: str = ""


@dataclass(frozen=True, slots=True)
class TablePrinter:
    """Prints the objects of a kind."""

    columns: tuple[Column, ...]
    print_row: PrintRow

    def row(self, content: Content, now: float) -> Cells:
        """The cells of an object; of a malformed one only the name, so that it does not hide the others."""
        try:
            return self.print_row(content, now)
        except (TypeError, AttributeError, ValueError, LookupError, ArithmeticError):
            name = str(nested_map(content, "metadata").get("name") or INVALID)
            cells = {"Name": name, "integer": None, "number": None, "boolean": None}
            return [cells.get(column.name, cells.get(column.type, INVALID)) for column in self.columns]


def printer(headers: str, print_row: PrintRow) -> TablePrinter:
    """From `Name | Data# | Age | IP+`: a plus for wide output only, a hash for a whole number."""
    columns = []
    for header in headers.split(" | "):
        name = header.rstrip("+#")
        type = "integer" if "#" in header else "string"
        columns.append(Column(name, type, "name" if name == "Name" else "", int("+" in header)))
    return TablePrinter(tuple(columns), print_row)


def cell_printer(headers: str, cell: Callable[[Content], Any]) -> TablePrinter:
    """Of the name, one more cell, and the age."""
    return printer(headers, lambda content, now: [name_of(content), cell(content), age(content, now)])


def field_printer(headers: str, *path: str) -> TablePrinter:
    """Of the name, a field or nothing, and the age."""
    return cell_printer(headers, lambda content: nested_map(content, *path[:-1]).get(path[-1]) or "")


def count_printer(headers: str, *path: str) -> TablePrinter:
    """Of the name, a number of entries, and the age."""
    return cell_printer(headers, lambda content: len(nested_map(content, *path[:-1]).get(path[-1]) or ()))


# -- helpers of rows


def nested_map(content: Content, *path: str) -> Content:
    """A map inside an object; empty where there is none."""
    for key in path:
        child = content.get(key)
        content = child if isinstance(child, dict) else {}
    return content


def name_of(content: Content) -> str:
    return str(nested_map(content, "metadata").get("name", ""))


def format_labels(labels: Content | None) -> str:
    """`a=b,c=d`."""
    return ",".join(f"{key}={value}" for key, value in sorted(labels.items())) if labels else NONE


def format_list(items: list[Any] | None, most: int = 3) -> str:
    """`a,b,c + 2 more...`."""
    if not items:
        return NONE
    text = ",".join(map(str, items[:most]))
    return f"{text} + {len(items) - most} more..." if len(items) > most else text


def condition(content: Content, type: str) -> Content:
    """A condition of the status; empty without one."""
    for item in nested_map(content, "status").get("conditions") or ():
        if item.get("type") == type:
            return dict(item)
    return {}


_OPERATORS = {"In": "in", "NotIn": "notin"}


def selector_text(selector: Content | None) -> str:
    """A label selector as kubectl writes it."""
    if not selector:
        return NONE
    terms = [f"{key}={value}" for key, value in sorted((selector.get("matchLabels") or {}).items())]
    for requirement in selector.get("matchExpressions") or ():
        key, operator = requirement.get("key", ""), requirement.get("operator", "")
        if operator in _OPERATORS:
            terms.append(
                f"{key} {_OPERATORS[operator]} ({','.join(sorted(requirement.get('values') or ()))})"
            )
        else:
            terms.append(f"!{key}" if operator == "DoesNotExist" else key)
    return ",".join(terms) or NONE


AGES = printer("Name | Age", lambda content, now: [name_of(content), age(content, now)])
CREATION_TIMES = printer(
    "Name | Created At",
    lambda content, _: [name_of(content), nested_map(content, "metadata").get("creationTimestamp") or ""],
)
