"""Files of a data folder: secrets are written so that neither a crash nor another user sees half of them."""

from __future__ import annotations

import os
from pathlib import Path

OBJECTS = "objects.db"
"""The file of all objects."""
WRITABLE = "take a folder that you may write to, on a disk with room"


class DataError(Exception):
    """A file of a data folder that cannot be used; the message names it, what is wrong and the remedy."""


def write_secret(path: Path, content: bytes) -> None:
    """Replace a file by one that its owner alone may read: whole or not at all, also after a loss of power."""
    unfinished = path.with_suffix(path.suffix + ".new")
    try:
        unfinished.unlink(missing_ok=True)
        with os.fdopen(os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        unfinished.rename(path)
        _sync_folder(path.parent)
    except OSError as error:
        raise unwritable(path, error) from None


def _sync_folder(path: Path) -> None:
    """A rename lasts once its folder is on the disk."""
    folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def unwritable(path: Path, error: OSError) -> DataError:
    return DataError(f"{path}: cannot be written: {error.strerror or error}; {WRITABLE}")


def read_file(path: Path, remedy: str) -> bytes:
    """The content of a file that must be there; `remedy` helps whoever cannot read it."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror or error}; {remedy}") from None


def make_folder(path: Path) -> None:
    """For its owner alone; one that exists stays as it is."""
    try:
        path.mkdir(parents=True, exist_ok=True, mode=0o700)
    except FileExistsError:
        raise DataError(f"{path}: is not a folder; move it away, or take another folder") from None
    except OSError as error:
        raise unwritable(path, error) from None
