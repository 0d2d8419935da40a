"""The SQLite file of a store: one row per version of an object.

A write adds a row; a row is deleted once a later version has left the history that watches may ask for. So an object's
current state, its history and what it was before each change are the same rows. In WAL mode with `synchronous=NORMAL` a
committed transaction survives the death of the process at any point; with `FULL` also the loss of power.

The event loop never waits for the disk: what may take long runs on a thread, one call after the other. Between
transactions the write-ahead log is emptied and free pages are given back, so the files stay within `CHECKPOINT_BYTES`,
one transaction and `FREE_BYTES` of what the rows need: 64 MiB in all.
"""

from __future__ import annotations

import asyncio
import fcntl
import logging
import os
import shutil
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import IO, NamedTuple, TypeVar, TypeVarTuple

from stromboli.embedded.data_files import DataError, unwritable
from stromboli.embedded.store.records import Change, Record
from stromboli.embedded.store.stored_rows import read_row

log = logging.getLogger(__name__)

Arguments = TypeVarTuple("Arguments")
Result = TypeVar("Result")

_SCHEMA = """
CREATE TABLE IF NOT EXISTS versions (
    revision INTEGER PRIMARY KEY, resource TEXT NOT NULL, namespace TEXT NOT NULL, name TEXT NOT NULL,
    gone INTEGER NOT NULL, data BLOB NOT NULL
);
CREATE TABLE IF NOT EXISTS facts (name TEXT PRIMARY KEY, value INTEGER NOT NULL);
"""
CHECKPOINT_BYTES = 16 * 1024 * 1024
"""Size of the write-ahead log after which it is written into the database and emptied."""
FREE_BYTES = 16 * 1024 * 1024
"""Free pages in the database that are kept for the next rows; what is beyond is given back to the file system."""
LARGEST_TRANSACTION = 512 * 1024
"""Bytes of rows in one transaction, each of which counts for a page at least: some 75 pods, which watches and
controllers are told of in one turn of the event loop."""
SMALL_TRANSACTION = 512 * 1024
"""Likewise: up to this, and unless power must not be lost, a transaction is a copy into the kernel's memory, which is
shorter than the way to a thread and back."""
MOST_DELETED = 2048
"""Rows that one transaction deletes; each may change a page of its own."""
ROOM = 64 * 1024 * 1024
"""Bytes that the log, a transaction and free pages take at most, and which the disk has to have for that."""
PAGE = 4096
_VACUUM_PAGES = 1024
"""Pages that are moved in one transaction when free pages are given back."""
_ROWS_PER_STATEMENT = 100


class StoreInUse(DataError):
    """Another process has this store open."""


class WriteFailed(DataError):
    """The disk did not take a write; nothing of it remains."""


class DiskFull(WriteFailed):
    """There was no room on the disk for a write."""

    def __init__(self, path: str) -> None:
        self._folder = Path(path).parent
        super().__init__(
            f"{path}: the disk is full: {self._free() >> 20} MiB are free; make room on it for"
            f" {ROOM >> 20} MiB at least, and writes go on without a restart"
        )

    def _free(self) -> int:
        return shutil.disk_usage(self._folder).free

    @property
    def lasts(self) -> bool:
        """Whether there is still too little room."""
        return self._free() < ROOM


class Compaction(NamedTuple):
    """What leaves history: all changes up to a revision, and with them the rows that nothing else needs."""

    revision: int
    rows: Sequence[int]


class VersionLog:
    """An open SQLite file, locked for this process."""

    def __init__(self, path: Path | str, power_safe: bool = False):
        self.path = str(path)
        self._power_safe = power_safe
        self._checkpoint_at = CHECKPOINT_BYTES
        self._vacuum_due = False
        self._resources = ExitStack()
        """What is closed at the end: the thread, the database, and then the lock."""
        try:
            self._open()
        except BaseException:
            self.abandon()
            raise

    def _open(self) -> None:
        self._resources.enter_context(_acquire_lock(self.path))
        self._db = sqlite3.connect(
            self.path, 0, isolation_level=None, check_same_thread=False, cached_statements=256
        )
        self._resources.callback(self._db.close)
        self._thread = ThreadPoolExecutor(1, "version-log")
        self._resources.callback(self._thread.shutdown)
        self._db.execute("PRAGMA auto_vacuum=INCREMENTAL")  # of a file that has no tables yet
        self._db.execute("PRAGMA journal_mode=WAL")
        self._db.execute(f"PRAGMA synchronous={'FULL' if self._power_safe else 'NORMAL'}")
        self._db.execute("PRAGMA wal_autocheckpoint=0")
        self._db.executescript(_SCHEMA)
        self._enable_vacuum()
        self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def _enable_vacuum(self) -> None:
        """A file of a release that gave no pages back is written anew, once."""
        if self._pragma("auto_vacuum") != 0:
            return
        try:
            self._db.execute("PRAGMA auto_vacuum=INCREMENTAL")
            self._db.execute("VACUUM")
        except sqlite3.OperationalError as error:
            log.warning("%s: not written anew, so that it will not shrink: %s", self.path, error)

    def _pragma(self, name: str) -> int:
        (value,) = self._db.execute(f"PRAGMA {name}").fetchone()
        return int(value)

    def revisions(self) -> tuple[int, int]:
        """The last revision, and that up to which history was compacted."""
        facts = dict(self._db.execute("SELECT name, CAST(value AS INTEGER) FROM facts"))
        return facts.get("revision", 0), facts.get("horizon", 0)

    def versions(self) -> Iterator[tuple[Record, bool]]:
        """All versions, oldest first, and whether each is the last state of a deleted object."""
        rows = self._db.execute(
            "SELECT revision, resource, namespace, name, gone, data FROM versions ORDER BY revision"
        )
        for row in rows:
            yield read_row(self.path, row)

    async def write(self, batch: Sequence[Change], compaction: Compaction | None, revision: int) -> None:
        """Add a batch and compact history, in one transaction."""
        pages = sum(map(row_bytes, batch)) + PAGE * (len(compaction.rows) if compaction else 0)
        if pages <= SMALL_TRANSACTION and not self._power_safe:
            self.write_now(batch, compaction, revision)
        else:
            await self._run(self.write_now, batch, compaction, revision)

    async def _run(self, call: Callable[[*Arguments], Result], *arguments: *Arguments) -> Result:
        return await asyncio.get_running_loop().run_in_executor(self._thread, call, *arguments)

    def write_now(self, batch: Sequence[Change], compaction: Compaction | None, revision: int) -> None:
        """In few statements of many rows: after each, the interpreter's lock has to be acquired again."""
        db = self._db
        try:
            db.execute("BEGIN IMMEDIATE")
            for changes in _portions(batch):
                rows = ", ".join(["(?, ?, ?, ?, ?, ?)"] * len(changes))
                values = [value for change in changes for value in _row(change)]
                db.execute(f"INSERT INTO versions VALUES {rows}", values)
            if compaction is not None:
                self._compact(compaction)
            db.execute("INSERT OR REPLACE INTO facts VALUES ('revision', ?)", (revision,))
            db.execute("COMMIT")
        except Exception as error:  # of SQLite, or of a value that it cannot store
            if db.in_transaction:
                db.execute("ROLLBACK")
            if getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_FULL:
                raise DiskFull(self.path) from None
            raise WriteFailed(f"{self.path}: {error}") from None
        self._vacuum_due = self._vacuum_due or compaction is not None

    def _compact(self, compaction: Compaction) -> None:
        for revisions in _portions(compaction.rows):
            places = ", ".join("?" * len(revisions))
            self._db.execute(f"DELETE FROM versions WHERE revision IN ({places})", revisions)
        self._db.execute("INSERT OR REPLACE INTO facts VALUES ('horizon', ?)", (compaction.revision,))

    @property
    def upkeep_due(self) -> bool:
        return self._vacuum_due or self._log_bytes() >= self._checkpoint_at

    async def upkeep(self) -> None:
        """Empty the write-ahead log if it is large, and give back a portion of free pages; writes wait meanwhile."""
        try:
            await self._run(self._upkeep)
        except sqlite3.Error as error:  # what is committed stays so, in the log
            self._checkpoint_at = self._log_bytes() + CHECKPOINT_BYTES
            self._vacuum_due = False
            log.warning("%s: the write-ahead log grows: %s", self.path, error)

    def _upkeep(self) -> None:
        if self._log_bytes() >= self._checkpoint_at:
            self._checkpoint()
        if self._vacuum_due:
            self._vacuum_due = self._pragma("freelist_count") * PAGE > FREE_BYTES
            if self._vacuum_due:
                self._db.executescript(f"PRAGMA incremental_vacuum({_VACUUM_PAGES})")  # to its last step

    def _checkpoint(self) -> None:
        """Write the log into the database and empty it; another process that reads the file may prevent that."""
        busy, *_ = self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        if busy:
            log.warning("%s: the write-ahead log grows while another process reads the file", self.path)
        self._checkpoint_at = self._log_bytes() + CHECKPOINT_BYTES
        # The first write to an empty log waits for the disk, so it is made here, on the thread.
        self._db.execute("UPDATE facts SET value = value")

    def _log_bytes(self) -> int:
        try:
            return os.stat(f"{self.path}-wal").st_size
        except FileNotFoundError:
            return 0

    async def close(self) -> None:
        try:
            await self._run(self._db.execute, "PRAGMA wal_checkpoint(TRUNCATE)")
        except sqlite3.Error as error:  # what is committed stays so, in the log
            log.warning("%s: the write-ahead log stays beside it: %s", self.path, error)
        self.abandon()

    def abandon(self) -> None:
        """Close the file as it is."""
        self._resources.close()


def _acquire_lock(path: str) -> IO[str]:
    """A store serves reads from memory, so only one process may have its file; the lock ends with the process."""
    try:
        Path(path).touch(mode=0o600)  # it holds Secrets
        lock = os.fdopen(os.open(f"{path}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600), "r+")
    except OSError as error:
        raise unwritable(Path(path), error) from None
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        lock.close()
        raise StoreInUse(
            f"{path} is in use by another server; stop that first, or take another folder"
        ) from None
    return lock


def _portions(items: Sequence[Result]) -> Iterator[Sequence[Result]]:
    for start in range(0, len(items), _ROWS_PER_STATEMENT):
        yield items[start : start + _ROWS_PER_STATEMENT]


def row_bytes(change: Change) -> int:
    """What the row of a change takes, roughly; a page at least."""
    record = change.after or change.tombstone
    return PAGE + (len(record.data) if record is not None else 0)


def _row(change: Change) -> tuple[int, str, str, str, int, bytes]:
    record = change.after or change.tombstone
    assert record is not None
    return change.revision, *change.key, int(change.after is None), record.data
