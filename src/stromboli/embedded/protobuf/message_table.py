"""The message types of `messages.txt`, read when they are first needed."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import NamedTuple


class Field(NamedTuple):
    """A field of a message; `repeated` is a list, `mapped` a map of such values."""

    name: str
    type: str
    repeated: bool = False
    mapped: bool = False
    keeps_zero: bool = False


class Messages(NamedTuple):
    roots: dict[tuple[str, str], str]
    """The message of an object, by apiVersion and kind."""
    fields: dict[str, dict[int, Field]]
    unions: set[str]
    """Messages that are in JSON the value of one of their fields."""


@cache
def messages() -> Messages:
    table = Messages({}, {}, set())
    text = (files("stromboli.embedded.protobuf") / "messages.txt").read_text()
    for line in text.splitlines():
        if line.startswith("= "):
            _, version, kind, name = line.split()
            table.roots[version, kind] = name
        elif line.strip():
            name, _, listed = line.partition(":")
            if name.endswith("|"):
                name = name[:-1]
                table.unions.add(name)
            table.fields[name] = dict(_field(field) for field in listed.split(",") if field.strip())
    return table


def _field(text: str) -> tuple[int, Field]:
    number, name, kind = text.split()
    mapped = kind.startswith("%")
    repeated = kind.lstrip("%").startswith("*")
    return int(number.rstrip("?!")), Field(name, kind.lstrip("%*"), repeated, mapped, number[-1] in "?!")
