"""The folder of a sweep: its plan, a record for each run that ended well, and what is known of those that did not.

A record is written elsewhere in the folder and moved to its name once the run has ended, so what is there is whole.
"""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct, structs

from stromboli.simulator.reports.record_files import MAX_BYTES
from stromboli.simulator.reports.written_files import whole_file
from stromboli.simulator.sweeps.planned_run import PlannedRun
from stromboli.simulator.sweeps.sweep_plan import SweepPlan

PLAN = "sweep.json"
LOCK = "sweep.lock"
BEGUN = "begun, and its end is not known"
MOST_FAILURE_BYTES = 2**20
"""Of what is known of a run that failed, as a file."""
ATTEMPTS = 3
"""How often a run may be killed with its pod."""
_NO_LOCKS = (errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS)


class FolderInUse(Exception):
    """Another sweep works in the folder; the message says which and what to do."""


class UnusableFolder(Exception):
    """The folder cannot be written; the message says why and what to do."""


class FailedRun(Struct, frozen=True, omit_defaults=True):
    """A run that did not end well: the command, how it ended, and the last that it printed."""

    id: str
    title: str
    command: str
    outcome: str
    last_lines: tuple[str, ...] = ()
    attempts: int = 1
    pod: str = ""
    """The uid of the pod that tried it, on a cluster."""


class _RecordHead(Struct):
    """What shows whether a record is whole, and its measures; the rest is skipped, but must be JSON."""

    schema: int
    jobs: msgspec.Raw
    summary: dict[str, Any]
    partial: bool = False


class ResultsFolder:
    """Where the results of a sweep are."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.records = path / "records"
        self.failures = path / "failures"
        self.logs = path / "logs"
        self.unfinished = path / "unfinished"

    @contextmanager
    def locked(self, shared: bool = False) -> Iterator[None]:
        """Make the folder and keep other sweeps out of it; shares of the same sweep work there together."""
        try:
            for folder in (self.records, self.failures, self.logs, self.unfinished):
                folder.mkdir(parents=True, exist_ok=True)
            lock = os.open(self.path / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise _unusable(self.path, error) from None
        try:
            self._take(lock, fcntl.LOCK_SH if shared else fcntl.LOCK_EX)
            if shared:
                yield
                return
            _empty(self.unfinished)
            os.ftruncate(lock, 0)
            os.write(lock, f"{os.getpid()}\n".encode())
            try:
                yield
            finally:
                os.ftruncate(lock, 0)
        finally:
            os.close(lock)

    def _take(self, lock: int, kind: int) -> None:
        try:
            fcntl.flock(lock, kind | fcntl.LOCK_NB)
        except BlockingIOError:
            owner = os.pread(lock, 20, 0).decode(errors="replace").strip()
            process = f"process {owner}" if owner.isdigit() else "another process"
            raise FolderInUse(
                f"{self.path}: {process} sweeps in this folder; wait for its end, or take another with --results"
            ) from None
        except OSError as error:
            if error.errno not in _NO_LOCKS:  # a network's file system may know no locks
                raise

    # -- records

    def record(self, run_id: str) -> Path:
        """Where the record of a run is once it is whole."""
        return self.records / f"{run_id}.json"

    def is_done(self, run_id: str) -> bool:
        return is_whole(self.record(run_id))

    def scratch(self, run_id: str) -> Path:
        """Where a run of this process writes its record first."""
        return self.unfinished / f"{run_id}-{os.uname().nodename}-{os.getpid()}.json"

    def log(self, run_id: str) -> Path:
        """Where a run prints."""
        return self.logs / f"{run_id}.log"

    def keep(self, run_id: str) -> None:
        """Move the record of a run that ended well to its name."""
        self.scratch(run_id).replace(self.record(run_id))
        self.failure(run_id).unlink(missing_ok=True)
        self.log(run_id).unlink(missing_ok=True)

    def summary(self, run_id: str) -> dict[str, Any] | None:
        """The measures in the record of a run; None if it has no whole record."""
        head = _head(self.record(run_id))
        return None if head is None or head.partial else head.summary

    # -- failures

    def failure(self, run_id: str) -> Path:
        return self.failures / f"{run_id}.json"

    def begin(self, run: PlannedRun, line: str, pod: str) -> None:
        """A run begins. In a pod that is noted, as nobody else can tell if the whole pod is killed with it."""
        if not pod:
            self.failure(run.id).unlink(missing_ok=True)
            return
        before = self.failed(run.id)
        attempts = before.attempts + 1 if before is not None and before.pod == pod else 1
        self.note_failure(FailedRun(run.id, run.title, line, BEGUN, attempts=attempts, pod=pod))

    def given_up(self, run: PlannedRun, pod: str) -> FailedRun | None:
        """A run that failed in this pod before, or was killed with it time and again: it is not tried again there."""
        failed = self.failed(run.id)
        if failed is None or failed.pod != pod or (failed.outcome == BEGUN and failed.attempts < ATTEMPTS):
            return None
        if failed.outcome == BEGUN:
            outcome = f"killed with its pod {failed.attempts} times, perhaps for want of memory"
            failed = structs.replace(failed, outcome=outcome)
            self.note_failure(failed)
        return failed

    def note_failure(self, failed: FailedRun) -> None:
        with whole_file(self.failure(failed.id)) as file:
            file.write(msgspec.json.encode(failed))

    def failed(self, run_id: str) -> FailedRun | None:
        """What is known of a run that did not end well."""
        with suppress(OSError, msgspec.MsgspecError, UnicodeDecodeError):
            return msgspec.json.decode(_content(self.failure(run_id), MOST_FAILURE_BYTES), type=FailedRun)
        return None

    def save_plan(self, plan: SweepPlan) -> None:
        try:
            with whole_file(self.path / PLAN) as file:
                file.write(plan.encoded())
        except OSError as error:
            raise _unusable(self.path / PLAN, error) from None


def is_whole(path: Path) -> bool:
    """Whether a file is the record of a run that came to its end."""
    head = _head(path)
    return head is not None and not head.partial


def _unusable(path: Path, error: OSError) -> UnusableFolder:
    where, why = error.filename or path, error.strerror or error
    return UnusableFolder(f"{where}: cannot be written: {why}; --results names another folder")


def _head(path: Path) -> _RecordHead | None:
    try:
        return msgspec.json.decode(_content(path, MAX_BYTES), type=_RecordHead)
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None


def _content(path: Path, most: int) -> bytes:
    """Of a plain file that is not larger than it can be: others may write into a volume."""
    if not path.is_file():
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path))
    with path.open("rb") as file:
        content = file.read(most + 1)
    if len(content) > most:
        raise OSError(errno.EFBIG, os.strerror(errno.EFBIG), str(path))
    return content


def _empty(folder: Path) -> None:
    """Remove what runs left that were killed."""
    for entry in folder.iterdir():
        if entry.is_dir() and not entry.is_symlink():
            shutil.rmtree(entry, ignore_errors=True)
        else:
            entry.unlink(missing_ok=True)
