"""The folder of dumps: ours alone, with the latest few."""

from __future__ import annotations

import os
import stat
from pathlib import Path

MOST_DUMPS = 10
"""Kept; older ones are deleted."""
MOST_BYTES = 256 * 1024 * 1024
"""Kept besides a new one; older ones are deleted."""
PREFIX = "snapshot-"
WAY_OUT = "set --cache-dump-dir to a folder that can be written to"


class NotOurs(OSError):
    """The folder belongs to somebody else, or is none."""


class NoFolder(OSError):
    """The folder cannot be made."""


def dump_folder(parent: Path) -> Path:
    """Our own folder below one that others may write to, as `/tmp` is; both are made if they are missing."""
    folder = parent / f"stromboli-dumps-{os.geteuid()}"
    try:
        parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise NoFolder(f"{error}; {WAY_OUT}") from None
    try:
        folder.mkdir(mode=0o700)
    except FileExistsError:
        found = folder.lstat()
        if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid():
            raise NotOurs(
                f"{folder} is not a folder of ours; remove it, or set --cache-dump-dir to a folder that is"
            ) from None
        folder.chmod(0o700)
    except OSError as error:
        raise NoFolder(f"{error}; {WAY_OUT}") from None
    return folder


def prune(folder: Path) -> None:
    """Delete the oldest dumps, unfinished ones too, so that there is room for a new one."""
    count = size = 0
    for path, found in sorted(_dumps(folder), key=lambda dump: dump[1].st_mtime_ns, reverse=True):
        count, size = count + 1, size + found.st_size
        if count >= MOST_DUMPS or size > MOST_BYTES:
            path.unlink(missing_ok=True)


def _dumps(folder: Path) -> list[tuple[Path, os.stat_result]]:
    found = []
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.startswith(PREFIX) and entry.is_file(follow_symlinks=False):
                found.append((Path(entry.path), entry.stat(follow_symlinks=False)))
    return found
