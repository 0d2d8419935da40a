"""Tables of Volcano's command line: left-justified columns of given widths, or as wide as their cells and more."""

from __future__ import annotations

from collections.abc import Sequence

import typer

from stromboli.cli.cluster.object_output import cell

NO_RESOURCES = "No resources found"


def print_fixed(titles: Sequence[str], widths: Sequence[int], rows: Sequence[Sequence[object]]) -> None:
    """Columns of these widths; a space keeps longer cells apart."""
    for row in (titles, *rows):
        texts = [cell(value) for value in row]
        padded = [text.ljust(width) for text, width in zip(texts, widths, strict=True)]
        apart = [
            text if len(text) > len(plain) else f"{text} " for text, plain in zip(padded, texts, strict=True)
        ]
        typer.echo("".join(apart).rstrip())


def print_fitted(
    titles: Sequence[str], rows: Sequence[Sequence[object]], beyond_title: int, beyond_cell: int
) -> None:
    """Columns as wide as their title and cells, with so many spaces after each."""
    cells = [[cell(value) for value in row] for row in rows]
    widths = [
        max(len(title) + beyond_title, *(len(row[at]) + beyond_cell for row in cells), 0)
        for at, title in enumerate(titles)
    ]
    print_fixed(titles, widths, cells)
