"""The temporary folders of clusters: those whose cluster was killed are removed by the next."""

from __future__ import annotations

import fcntl
import os
import stat
import tempfile
from contextlib import suppress
from pathlib import Path

from stromboli.embedded.folder_removal import remove_tree
from stromboli.embedded.running_clusters import LOCK

PREFIX = "stromboli-"
_MARK = "temporary"
"""The file that says that a folder goes with its cluster; made when the folder is locked."""


def mark_temporary(folder: Path) -> None:
    """Have a locked folder removed by the next cluster, if its own is killed."""
    with suppress(OSError):
        (folder / _MARK).touch(0o600)


def keep(folder: Path) -> None:
    """Somebody named it as a folder of data: it is not temporary any more."""
    with suppress(OSError):
        (folder / _MARK).unlink(missing_ok=True)


def remove_abandoned() -> None:
    """Remove the temporary folders of this user whose clusters were killed: nobody holds their locks."""
    with suppress(OSError):
        for folder in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
            with suppress(OSError):
                _remove_if_abandoned(folder)


def _remove_if_abandoned(folder: Path) -> None:
    found, mark = folder.lstat(), (folder / _MARK).lstat()
    if not stat.S_ISDIR(found.st_mode) or {found.st_uid, mark.st_uid} != {os.getuid()}:
        return
    lock = os.open(folder / LOCK, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        remove_tree(folder)
    finally:
        os.close(lock)
