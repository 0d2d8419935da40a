"""The folder of a cluster: one cluster at a time lives in it, and others can tell that it does, and where."""

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
    """A folder that cannot be used, or no cluster where one was asked for; says the way out."""


@dataclass(frozen=True, slots=True)
class Running:
    """A cluster that runs: in which process, where its data are, where it listens."""

    pid: int
    data: str
    url: str = ""
    since: float = 0.0

    @property
    def kubeconfig(self) -> Path:
        return Path(self.data) / KUBECONFIG


class Folder:
    """A data folder that is ours until `release`; a temporary one goes with us."""

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
        self._lock = _locked(self.path)
        before = _read(self.path / LOCK)
        self.last_port = urlsplit(before.url).port or 0 if before is not None else 0
        """Where the cluster listened when it last ran, so that what knows it there finds it again."""

    def announce(self, url: str) -> None:
        """Tell others who we are and where we listen."""
        us = Running(os.getpid(), str(self.path), url, time.time())
        self._lock.seek(0)
        self._lock.truncate()
        json.dump(asdict(us), self._lock)
        self._lock.flush()
        entry = _index() / f"{us.pid}.json"
        entry.write_text(json.dumps(asdict(us)))

    def release(self) -> None:
        (_index() / f"{os.getpid()}.json").unlink(missing_ok=True)
        if self.temporary:
            shutil.rmtree(self.path, ignore_errors=True)
        else:
            (self.path / KUBECONFIG).unlink(missing_ok=True)
        self._lock.close()


def _locked(path: Path) -> IO[str]:
    """The lock of a folder; it ends with our process, however that ends."""
    lock = os.fdopen(os.open(path / LOCK, os.O_RDWR | os.O_CREAT, 0o600), "r+")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        other = _read(path / LOCK)
        lock.close()
        who = f" (process {other.pid}, {other.url})" if other is not None else ""
        raise FolderError(
            f"{path}: a cluster runs there already{who}; `stromboli down --data {path}` stops it"
        ) from None
    return lock


def _index() -> Path:
    """Where running clusters of this user are listed."""
    base = os.environ.get("XDG_RUNTIME_DIR") or tempfile.gettempdir()
    path = Path(base) / f"stromboli-clusters-{os.getuid()}"
    path.mkdir(mode=0o700, exist_ok=True)
    if path.stat().st_uid != os.getuid():
        raise FolderError(f"{path}: belongs to somebody else; set XDG_RUNTIME_DIR to a folder of your own")
    return path


def _read(path: Path) -> Running | None:
    try:
        return Running(**json.loads(path.read_text()))
    except (OSError, ValueError, TypeError):
        return None


def lives(running: Running) -> bool:
    """Whether that very cluster still holds its lock."""
    there = _read(Path(running.data) / LOCK)
    if there is None or there.pid != running.pid:
        return False
    try:
        with (Path(running.data) / LOCK).open() as lock:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False


def clusters() -> list[Running]:
    """All clusters of this user that run, the oldest first."""
    found = []
    for entry in _index().glob("*.json"):
        running = _read(entry)
        if running is not None and lives(running):
            found.append(running)
        else:
            entry.unlink(missing_ok=True)
    return sorted(found, key=lambda one: one.since)


def find(data: Path | None) -> Running:
    """The cluster in a folder, or the only one that runs."""
    if data is not None:
        running = _read(data.absolute() / LOCK)
        if running is None or not lives(running):
            raise FolderError(f"{data}: no cluster runs there; `stromboli up --data {data}` starts one")
        return running
    found = clusters()
    if not found:
        raise FolderError("no cluster runs; `stromboli up` starts one")
    if len(found) > 1:
        listed = ", ".join(one.data for one in found)
        raise FolderError(f"{len(found)} clusters run; say which one with --data: {listed}")
    return found[0]


def stop(running: Running, patience: float = 30.0) -> bool:
    """Ask a cluster to stop; whether it did in time."""
    try:
        os.kill(running.pid, signal.SIGTERM)
    except ProcessLookupError:
        return True
    deadline = time.monotonic() + patience
    while lives(running):
        if time.monotonic() > deadline:
            return False
        time.sleep(POLL)
    return True
