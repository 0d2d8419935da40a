"""Where a cluster of `stromboli up` tells the user's other commands how to open its dashboard."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

NAME = "dashboard"
"""In the data folder of the cluster, which nobody else may read."""
LONGEST = 1024
"""Bytes of it that are read."""


def write_address(folder: Path, address: str) -> None:
    """All of it or nothing, as others may read it at any moment."""
    unfinished = folder / f".{NAME}.{os.getpid()}"
    unfinished.unlink(missing_ok=True)
    file = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with os.fdopen(file, "w") as opened:
        opened.write(address)
    os.replace(unfinished, folder / NAME)


def read_address(folder: Path) -> str:
    """The address with the code that lets in next; empty if the cluster has no dashboard."""
    try:
        with (folder / NAME).open("rb") as file:
            content = file.read(LONGEST)
    except OSError:
        return ""
    return content.decode("ascii", errors="replace")


def remove_address(folder: Path) -> None:
    with suppress(OSError):
        (folder / NAME).unlink()
