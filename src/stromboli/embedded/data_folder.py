"""The data folder of a cluster: locked by the cluster that runs in it, with a record of where that listens."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import signal
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO
from urllib.parse import urlsplit

LOCK = "lock"
KUBECONFIG = "kubeconfig"
POLL = 0.05


class FolderError(Exception):
    """A folder that cannot be used, or a cluster that is not there; the message says what to do."""


@dataclass(frozen=True, slots=True)
class RunningCluster:
    """The process, data folder and address of a running cluster."""

    pid: int
    data: str
    url: str = ""
    since: float = 0.0
    policy: str = ""
    """The preset or file that its scheduler goes by."""

    @property
    def kubeconfig(self) -> Path:
        return Path(self.data) / KUBECONFIG


class DataFolder:
    """Locked until `release`, which deletes a temporary folder."""

    def __init__(self, path: Path | None) -> None:
        self.temporary = path is None
        if path is None:
            self.path = Path(tempfile.mkdtemp(prefix="stromboli-"))
        else:
            self.path = path.absolute()
            try:
                self.path.mkdir(parents=True, exist_ok=True, mode=0o700)
            except FileExistsError:
                raise FolderError(f"{self.path}: is not a folder") from None
            except OSError as error:
                raise FolderError(f"{self.path}: cannot be made: {error.strerror}") from None
        self._lock = _acquire_lock(self.path)
        last_run = _read(self.path / LOCK)
        self.last_port = urlsplit(last_run.url).port or 0 if last_run is not None else 0
        """The port of the last run, so that kubeconfigs of then still work."""

    def announce(self, url: str, policy: str = "") -> None:
        """Record the process, address and policy, for other commands."""
        record = RunningCluster(os.getpid(), str(self.path), url, time.time(), policy)
        self._lock.seek(0)
        self._lock.truncate()
        json.dump(asdict(record), self._lock)
        self._lock.flush()
        entry = _index() / f"{record.pid}.json"
        entry.write_text(json.dumps(asdict(record)))

    def release(self) -> None:
        (_index() / f"{os.getpid()}.json").unlink(missing_ok=True)
        if self.temporary:
            shutil.rmtree(self.path, ignore_errors=True)
        else:
            (self.path / KUBECONFIG).unlink(missing_ok=True)
        self._lock.close()


def _acquire_lock(path: Path) -> IO[str]:
    """The lock ends with the process, however that ends."""
    lock = os.fdopen(os.open(path / LOCK, os.O_RDWR | os.O_CREAT, 0o600), "r+")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        other = _read(path / LOCK)
        lock.close()
        owner = f" (process {other.pid}, {other.url})" if other is not None else ""
        raise FolderError(
            f"{path}: a cluster runs there already{owner}; `stromboli down --data {path}` stops it"
        ) from None
    return lock


def _index() -> Path:
    """The folder that lists the running clusters of this user."""
    base = os.environ.get("XDG_RUNTIME_DIR") or tempfile.gettempdir()
    path = Path(base) / f"stromboli-clusters-{os.getuid()}"
    path.mkdir(mode=0o700, exist_ok=True)
    if path.stat().st_uid != os.getuid():
        raise FolderError(f"{path}: belongs to somebody else; set XDG_RUNTIME_DIR to a folder of your own")
    return path


def _read(path: Path) -> RunningCluster | None:
    try:
        return RunningCluster(**json.loads(path.read_text()))
    except (OSError, ValueError, TypeError):
        return None


def is_running(running: RunningCluster) -> bool:
    """Whether this very cluster still holds its lock."""
    current = _read(Path(running.data) / LOCK)
    if current is None or current.pid != running.pid:
        return False
    try:
        with (Path(running.data) / LOCK).open() as lock:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False


def running_clusters() -> list[RunningCluster]:
    """All running clusters of this user, the oldest first."""
    clusters = []
    for entry in _index().glob("*.json"):
        running = _read(entry)
        if running is not None and is_running(running):
            clusters.append(running)
        else:
            entry.unlink(missing_ok=True)
    return sorted(clusters, key=lambda cluster: cluster.since)


def find_cluster(data: Path | None) -> RunningCluster:
    """The cluster in a folder, or the only one that runs."""
    if data is not None:
        running = _read(data.absolute() / LOCK)
        if running is None or not is_running(running):
            raise FolderError(f"{data}: no cluster runs there; `stromboli up --data {data}` starts one")
        return running
    clusters = running_clusters()
    if not clusters:
        raise FolderError("no cluster runs; `stromboli up` starts one")
    if len(clusters) > 1:
        listed = ", ".join(cluster.data for cluster in clusters)
        raise FolderError(f"{len(clusters)} clusters run; say which one with --data: {listed}")
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
