"""The mark of a data folder: which format it has, and which release wrote it last.

A newer release reads every earlier format, and brings what it finds up to date. The other way round nothing is
promised, so a folder of a later format is refused before anything in it is touched.
"""

from __future__ import annotations

import os
from pathlib import Path

import msgspec

from stromboli import __version__
from stromboli.embedded.data_files import DataError, read_file, write_secret

NAME = "format.json"
FORMAT = 2
"""1 is a folder without a mark, whose Services may lack addresses. It rises when an earlier release could not go on."""
LARGEST_MARK = 4096
"""Bytes."""


class Mark(msgspec.Struct, frozen=True):
    """What stands in the file."""

    format: int
    release: str = ""


def check_format(folder: Path) -> bool:
    """Whether this very release used a folder last; `DataError` if its format is a later one."""
    path = folder / NAME
    mark = _read(path) if os.path.lexists(path) else None
    if mark is not None and mark.format > FORMAT:
        raise DataError(
            f"{folder}: stromboli {mark.release[:100] or '(unknown)'} used it last, which writes format {mark.format};"
            f" this is {__version__}, which knows up to {FORMAT}. Install that release (make install in"
            " a checkout of it), or choose another directory"
        )
    return mark == Mark(FORMAT, __version__)


def mark_format(folder: Path) -> None:
    """Once everything in it is up to date."""
    write_secret(folder / NAME, msgspec.json.encode(Mark(FORMAT, __version__)) + b"\n")


def _read(path: Path) -> Mark:
    remedy = "delete it if the release that wrote the folder last was not a later one than this"
    content = read_file(path, remedy)
    try:
        return msgspec.json.decode(content[:LARGEST_MARK], type=Mark)
    except msgspec.DecodeError as error:
        raise DataError(f"{path}: cannot be read: {error}; {remedy}") from None
