"""The files that runs read: a digest of what is in them, so that a changed trace or policy is another run."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from pathlib import Path

from stromboli.api.errors import Unreadable

MOST_FILES = 1_000
"""Files of a folder that is an input."""
_BLOCK = 1 << 20


class InputFiles:
    """Digests of files and folders, each read once."""

    def __init__(self) -> None:
        self._digests: dict[Path, str] = {}

    def digest(self, path: Path) -> str:
        """Of the content of a file, or of the names and contents of all files of a folder."""
        known = self._digests.get(path)
        if known is None:
            digest = _folder_digest if os.path.isdir(path) else _file_digest
            known = self._digests[path] = digest(path)
        return known


def files_below(folder: Path) -> Iterator[Path]:
    """The files of a folder that is an input, in the order of their names; caches of Python are none."""
    count = 0
    for place, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if name != "__pycache__" and not name.startswith("."))
        for name in sorted(names):
            if not name.startswith("."):
                count += 1
                if count > MOST_FILES:
                    raise Unreadable(
                        f"{folder}: more than {MOST_FILES:,} files; name a folder with only what the runs need"
                    )
                yield Path(place, name)


def _folder_digest(folder: Path) -> str:
    digest = hashlib.sha256(b"folder")
    for file in files_below(folder):
        digest.update(f"{file.relative_to(folder).as_posix()}\0{_file_digest(file)}\n".encode())
    return digest.hexdigest()


def _file_digest(path: Path) -> str:
    digest = hashlib.sha256()
    try:
        if not path.is_file():
            raise Unreadable(f"{path}: no such file" if not path.exists() else f"{path}: not a plain file")
        with path.open("rb") as file:
            while block := file.read(_BLOCK):
                digest.update(block)
    except OSError as error:
        raise Unreadable(f"{path}: cannot be read: {error.strerror or error}") from None
    return digest.hexdigest()
