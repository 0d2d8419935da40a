"""Files that commands write beside what they print; whether they can be written is said before the work."""

from __future__ import annotations

import enum
import os
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import TypeVar

import typer

from stromboli.cli.cli_errors import Usage

Content = TypeVar("Content")


class PlotFormat(enum.StrEnum):
    """Files that plots are drawn into."""

    PNG = "png"
    SVG = "svg"
    PDF = "pdf"


REPORT = typer.Option(
    None, "--report", metavar="PAGE.HTML", help="Write a page with plots that needs no network."
)
PLOTS = typer.Option(
    None, "--plots", metavar="FOLDER", help="Draw plots for a paper, a file each (needs matplotlib)."
)
PLOT_FORMAT = typer.Option(PlotFormat.PNG, "--format", help="Of those plots.")


def check_files(*paths: Path | None) -> None:
    """Refuse files that could not be written once the work is done."""
    for path in paths:
        if path is not None and not path.parent.is_dir():
            raise Usage(f"{path}: there is no folder {path.parent}")
        if path is not None and path.is_dir():
            raise Usage(f"{path}: this is a folder; give the name of a file")


def check_folders(*paths: Path | None) -> None:
    """Refuse folders that could not be created once the work is done."""
    for path in paths:
        existing = next((each for each in (path, *path.parents) if each.exists()), path) if path else None
        if existing is not None and not existing.is_dir():
            raise Usage(f"{existing}: this is a file; give the name of a folder")
        if existing is not None and not os.access(existing, os.W_OK):
            raise Usage(f"{path}: cannot be written: {existing} is read-only for this user")


def check_plots(folder: Path | None) -> None:
    """Refuse plots where nothing can draw or keep them."""
    check_folders(folder)
    if folder is not None and find_spec("matplotlib") is None:
        raise Usage("--plots needs matplotlib, which is not installed: pip install matplotlib")


def write_file(
    path: Path | None, content: Content, write: Callable[[Content, Path], object], quiet: bool = False
) -> None:
    """Write a file or a folder, if one was asked for, and say so; what cannot be written is told by its name."""
    if path is None:
        return
    try:
        write(content, path)
    except OSError as error:
        raise Usage(f"{path}: cannot be written: {error.strerror or error}") from None
    if not quiet:
        typer.echo(f"written: {path}", err=True)
