"""The running clusters of this user: an index of small files, by process, in a folder that nobody else may use.

The folder's name can be foreseen, so nothing in it is trusted: it is opened without following links, it must be ours,
and of its entries only regular files of our own count. An entry is true if its cluster holds the lock of its
data folder.
"""

from __future__ import annotations

import fcntl
import os
import re
import signal
import stat
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Annotated

import msgspec

from stromboli.embedded.data_files import DataError

LOCK = "lock"
KUBECONFIG = "kubeconfig"
UNIT_VARIABLE = "STROMBOLI_UNIT"
"""Set by a unit of systemd: its own name."""
POLL = 0.05
LARGEST_RECORD = 64 * 1024
"""Bytes of a record that are read."""
_ENTRY = re.compile(r"([1-9][0-9]{0,9})\.json")
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class FolderError(DataError):
    """A folder that cannot be used, or a cluster that is not there; the message says what to do."""


class RunningCluster(msgspec.Struct, frozen=True):
    """The process, data folder and address of a running cluster."""

    pid: Annotated[int, msgspec.Meta(ge=1, lt=2**31)]
    data: str
    url: str = ""
    since: float = 0.0
    policy: str = ""
    """The preset or file that its scheduler goes by."""
    unit: str = ""
    """The unit of systemd that runs it, if one does."""

    @property
    def kubeconfig(self) -> Path:
        return Path(self.data) / KUBECONFIG

    @property
    def lock(self) -> Path:
        return Path(self.data) / LOCK


# -- the index


def _index_path() -> Path:
    """Return the path of the list; `FileNotFoundError` without a writable temporary directory."""
    return (
        Path(os.environ.get("XDG_RUNTIME_DIR") or tempfile.gettempdir()) / f"stromboli-clusters-{os.getuid()}"
    )


@contextmanager
def _index() -> Iterator[int]:
    """The folder that lists the running clusters of this user, as a descriptor; it must exist."""
    path = _index_path()
    try:
        index = os.open(path, _READ | os.O_DIRECTORY)
    except NotADirectoryError:  # a link too
        raise FolderError(f"{path}: is not a folder of yours; set XDG_RUNTIME_DIR to one") from None
    try:
        found = os.fstat(index)
        if found.st_uid != os.getuid() or found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
            raise FolderError(
                f"{path}: belongs to somebody else, or others may write there;"
                " set XDG_RUNTIME_DIR to a folder of your own"
            )
        yield index
    finally:
        os.close(index)


def add_entry(cluster: RunningCluster) -> None:
    """List a cluster; `FolderError` or `OSError` if that is impossible."""
    with suppress(FileExistsError):
        _index_path().mkdir(mode=0o700)
    with _index() as index:
        name = f"{cluster.pid}.json"
        with suppress(FileNotFoundError):
            os.unlink(name, dir_fd=index)
        file = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600, dir_fd=index)
        with os.fdopen(file, "wb") as entry:
            entry.write(msgspec.json.encode(cluster))


def remove_entry(pid: int) -> None:
    with suppress(FolderError, OSError), _index() as index:
        os.unlink(f"{pid}.json", dir_fd=index)


def running_clusters() -> list[RunningCluster]:
    """All running clusters of this user, the oldest first; entries of those that ended are removed."""
    clusters = []
    try:
        with _index() as index:
            for name in os.listdir(index):
                if (match := _ENTRY.fullmatch(name)) and _is_own_file(index, name):
                    cluster = _running_cluster(index, name, int(match[1]))
                    clusters += [cluster] if cluster is not None else []
    except FileNotFoundError as error:
        if (runtime := os.environ.get("XDG_RUNTIME_DIR")) and not Path(runtime).is_dir():
            raise _cannot_be_listed(error) from None
        return []  # no cluster was started yet, or no temporary directory exists
    except OSError as error:
        raise _cannot_be_listed(error) from None
    return sorted(clusters, key=lambda cluster: cluster.since)


def _cannot_be_listed(error: OSError) -> FolderError:
    return FolderError(f"running clusters cannot be listed: {error}; --data names the one you mean")


def _is_own_file(index: int, name: str) -> bool:
    try:
        found = os.stat(name, dir_fd=index, follow_symlinks=False)
    except OSError:
        return False
    return stat.S_ISREG(found.st_mode) and found.st_uid == os.getuid()


def _running_cluster(index: int, name: str, pid: int) -> RunningCluster | None:
    """The cluster of an entry; None if it does not run, and then its entry goes unless its process lives."""
    cluster = read_record(name, index)
    if cluster is not None and cluster.pid == pid and is_running(cluster):
        return cluster
    if cluster is not None or not _is_alive(pid):
        with suppress(FileNotFoundError):
            os.unlink(name, dir_fd=index)
    return None


# -- records


def read_record(path: str | Path, folder: int | None = None) -> RunningCluster | None:
    """What a lock or an entry says; None if that cannot be read."""
    try:
        file = os.open(path, _READ, dir_fd=folder)
    except OSError:
        return None
    try:
        if not stat.S_ISREG(os.fstat(file).st_mode):
            return None
        return msgspec.json.decode(os.read(file, LARGEST_RECORD), type=RunningCluster)
    except (OSError, ValueError):
        return None
    finally:
        os.close(file)


def is_running(cluster: RunningCluster) -> bool:
    """Whether this very cluster still holds its lock, and the lock belongs to whom its process belongs to."""
    current = read_record(cluster.lock)
    if current is None or current.pid != cluster.pid:
        return False
    try:
        file = os.open(cluster.lock, _READ)
    except OSError:
        return False
    try:
        if not _belongs_to(os.fstat(file).st_uid, cluster.pid):
            return False
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    finally:
        os.close(file)
    return False


def _belongs_to(user: int, pid: int) -> bool:
    """Whether a process is one of the user's; without /proc that cannot be told, and the lock alone counts."""
    try:
        return os.stat(f"/proc/{pid}").st_uid == user
    except OSError:
        return not Path("/proc/self").exists()


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        pass  # it is somebody else's
    return True


# -- commands


def find_cluster(data: Path | None) -> RunningCluster:
    """The cluster in a folder, or the only one that runs."""
    if data is not None:
        running = read_record(data.absolute() / LOCK)
        if running is None or not is_running(running):
            raise FolderError(f"{data}: no cluster runs there; `stromboli up --data {data}` starts one")
        return running
    clusters = running_clusters()
    if not clusters:
        raise FolderError("no cluster runs; `stromboli up` starts one")
    if len(clusters) > 1:
        listed = ", ".join(cluster.data for cluster in clusters)
        raise FolderError(f"{len(clusters)} clusters run; say which one with --data or KUBECONFIG: {listed}")
    return clusters[0]


def stop_cluster(running: RunningCluster, timeout: float = 30.0) -> bool:
    """Ask a cluster to stop; whether it did in time."""
    try:
        os.kill(running.pid, signal.SIGTERM)
    except ProcessLookupError:
        return True
    deadline = time.monotonic() + timeout
    while is_running(running):
        if time.monotonic() > deadline:
            return False
        time.sleep(POLL)
    return True
