"""The value of `--data`, wherever it is given."""

from __future__ import annotations

from pathlib import Path

import typer


def data_folder(value: str) -> Path:
    """Absolute, without links and `..`, wherever it goes from here.

    An empty value is refused: it is a variable of a script that is not set, and would mean the current folder.
    """
    if not value:
        raise typer.BadParameter("is empty; name a folder, or leave the option out")
    return Path(value).resolve()
