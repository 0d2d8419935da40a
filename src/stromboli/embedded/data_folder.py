"""The data folder of a cluster: locked by the cluster that runs in it, with a record of where that listens."""

from __future__ import annotations

import fcntl
import logging
import os
import stat
import tempfile
import threading
import time
from contextlib import suppress
from pathlib import Path
from urllib.parse import urlsplit

import msgspec

from stromboli.embedded.data_files import OBJECTS, WRITABLE, unwritable
from stromboli.embedded.data_format import NAME as FORMAT_FILE
from stromboli.embedded.folder_removal import remove_tree
from stromboli.embedded.running_clusters import (
    KUBECONFIG,
    LOCK,
    UNIT_VARIABLE,
    FolderError,
    RunningCluster,
    add_entry,
    read_record,
    remove_entry,
)
from stromboli.embedded.temporary_folders import PREFIX, keep, mark_temporary, remove_abandoned

log = logging.getLogger(__name__)

_MARKS = (LOCK, FORMAT_FILE, OBJECTS)
"""Files by which the folder of a cluster is known, of whatever release."""
_NOBODYS = ("lost+found", ".DS_Store")
"""What is in a folder although nobody put it there."""


class DataFolder:
    """Locked until `release`, which deletes a temporary folder."""

    def __init__(self, path: Path | None) -> None:
        self.temporary = path is None
        self.path = _temporary_folder() if path is None else _own_folder(path.resolve())
        self._lock = _acquire_lock(self.path)
        if self.temporary:
            mark_temporary(self.path)
            threading.Thread(target=remove_abandoned, name="abandoned folders", daemon=True).start()
        else:
            keep(self.path)
        last_run = read_record(self.path / LOCK)
        self.last_port = _port(last_run.url) if last_run is not None else 0
        """The port of the last run, so that kubeconfigs of then still work."""

    def announce(self, url: str, policy: str = "") -> None:
        """Record the process, address and policy, for other commands."""
        unit = os.environ.get(UNIT_VARIABLE, "")
        cluster = RunningCluster(os.getpid(), str(self.path), url, time.time(), policy, unit)
        try:
            os.ftruncate(self._lock, 0)
            os.pwrite(self._lock, msgspec.json.encode(cluster), 0)
        except OSError as error:
            raise unwritable(self.path / LOCK, error) from None
        try:
            add_entry(cluster)
        except (FolderError, OSError) as error:
            log.warning("other commands find this cluster by --data %s alone: %s", self.path, error)

    def release(self) -> None:
        remove_entry(os.getpid())
        if self.temporary:
            remove_tree(self.path)
        else:
            with suppress(OSError):
                (self.path / KUBECONFIG).unlink(missing_ok=True)
        os.close(self._lock)


def _temporary_folder() -> Path:
    try:
        return Path(tempfile.mkdtemp(prefix=PREFIX))
    except OSError as error:
        raise FolderError(
            f"no temporary folder can be made: {error}; --data or TMPDIR names a place"
        ) from None


def check_content(path: Path) -> None:
    """`FolderError` if a folder has files, and none that a cluster leaves: somebody uses it for something else."""
    try:
        content = sorted(os.listdir(path))
    except OSError:
        return  # it is not there, or cannot be used anyway
    others = [name for name in content if name not in _NOBODYS]
    if others and not any(name in _MARKS for name in others):
        named = ", ".join(name[:60] for name in others[:3]) + ", ..." * (len(others) > 3)
        raise FolderError(
            f"{path}: is not the folder of a cluster, and not empty ({named}); take an empty folder or a new one,"
            f" such as {path / 'stromboli'}"
        )


def _own_folder(path: Path) -> Path:
    """A folder that exists or is made, in which nobody can put keys of their own."""
    check_content(path)
    try:
        path.mkdir(parents=True, exist_ok=True, mode=0o700)
        mode = path.stat().st_mode
    except FileExistsError:
        raise FolderError(f"{path}: is not a folder; take another one, or move it away") from None
    except OSError as error:
        raise FolderError(f"{path}: cannot be made: {error.strerror}; {WRITABLE}") from None
    if mode & stat.S_IWOTH:
        raise FolderError(
            f"{path}: everybody may write there, and so replace keys; chmod o-w {path}, or take a folder of your own"
        )
    return path


def _acquire_lock(path: Path) -> int:
    """The lock ends with the process, however that ends."""
    try:
        lock = os.open(path / LOCK, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise FolderError(f"{path / LOCK}: cannot be written: {error.strerror}; {WRITABLE}") from None
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(lock)
        other = read_record(path / LOCK)
        owner = f" (process {other.pid}, {other.url})" if other is not None else ""
        raise FolderError(
            f"{path}: a cluster runs there already{owner}; `stromboli down --data {path}` stops it"
        ) from None
    return lock


def _port(url: str) -> int:
    try:
        return urlsplit(url).port or 0
    except ValueError:
        return 0
