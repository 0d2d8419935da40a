"""The text of `describe`: fields in two columns, sections below each other, nothing that a terminal could obey."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import typer

from stromboli.cli.cluster.cluster_errors import shown
from stromboli.cli.cluster.object_output import NONE, table_lines

WIDTH = 14
"""Of the names of fields."""
MOST_ENTRIES = 100
"""Of labels, annotations and other maps."""


class Description:
    """Lines, as they are added."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def field(self, name: str, value: object) -> None:
        """A field and its value, left out if there is none."""
        if value not in (None, "", (), []):
            self.lines.append(f"{name + ':':<{WIDTH}} {shown(str(value))}")

    def entries(self, name: str, values: object) -> None:
        """A map, an entry per line, the first of them behind the name."""
        pairs = sorted(values.items()) if isinstance(values, Mapping) else []
        texts = [shown(f"{key}={value}") for key, value in pairs[:MOST_ENTRIES]] or [NONE]
        if len(pairs) > MOST_ENTRIES:
            texts.append(f"and {len(pairs) - MOST_ENTRIES} more")
        for position, text in enumerate(texts):
            self.lines.append(f"{name + ':' if not position else '':<{WIDTH}} {text}")

    def section(self, title: str, lines: Iterable[str]) -> None:
        """Lines under a title; nothing if there are none."""
        if indented := [f"  {shown(line)}" for line in lines]:
            self.lines += [f"{title}:", *indented]

    def table(self, title: str, titles: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
        """A table under a title."""
        self.section(title, table_lines(titles, rows) if rows else ())

    def print(self) -> None:
        for line in self.lines:
            typer.echo(line)
