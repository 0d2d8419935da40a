"""The SQLite file of a store: one row per version of an object.

A write adds a row; a row is deleted once a later version has left the history that watches may ask for. So an object's
current state, its history and what it was before each change are the same rows. In WAL mode with `synchronous=NORMAL` a
committed transaction survives the death of the process at any point; with `FULL` also the loss of power.
"""

from __future__ import annotations

import asyncio
import fcntl
import sqlite3
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO

from stromboli.embedded.store.records import Change, Key, Record

_SCHEMA = """
CREATE TABLE IF NOT EXISTS versions (
    revision INTEGER PRIMARY KEY, resource TEXT NOT NULL, namespace TEXT NOT NULL, name TEXT NOT NULL,
    gone INTEGER NOT NULL, data BLOB NOT NULL
);
CREATE TABLE IF NOT EXISTS facts (name TEXT PRIMARY KEY, value INTEGER NOT NULL);
"""
CHECKPOINT_ROWS = 4_000
"""Rows after which the write-ahead log is checkpointed, beside the event loop."""


class StoreInUse(Exception):
    """Another process has this store open."""


class WriteFailed(Exception):
    """The disk did not take a write; nothing of it remains."""


class VersionLog:
    """An open SQLite file, locked for this process."""

    def __init__(self, path: Path | str, power_safe: bool = False):
        self._path = str(path)
        self._rows_since_checkpoint = 0
        self._checkpoint: asyncio.Task[None] | None = None
        self._lock = _acquire_lock(self._path)
        Path(self._path).touch(mode=0o600)  # it holds Secrets
        self._db = sqlite3.connect(self._path, isolation_level=None, check_same_thread=False)
        self._db.execute("PRAGMA journal_mode=WAL")
        self._db.execute(f"PRAGMA synchronous={'FULL' if power_safe else 'NORMAL'}")
        self._db.execute("PRAGMA wal_autocheckpoint=0")
        self._db.executescript(_SCHEMA)

    def revisions(self) -> tuple[int, int]:
        """The last revision, and that up to which history was compacted."""
        facts = dict(self._db.execute("SELECT name, value FROM facts"))
        return facts.get("revision", 0), facts.get("horizon", 0)

    def versions(self) -> Iterator[tuple[Record, bool]]:
        """All versions, oldest first, and whether each is the last state of a deleted object."""
        rows = self._db.execute(
            "SELECT revision, resource, namespace, name, gone, data FROM versions ORDER BY revision"
        )
        for revision, resource, namespace, name, deleted, data in rows:
            yield Record(Key(resource, namespace, name), revision, data), bool(deleted)

    def write(self, batch: Sequence[Change], compacted: Sequence[Change], revision: int) -> None:
        """Add a batch and drop what only compacted changes needed, in one transaction."""
        db = self._db
        try:
            db.execute("BEGIN IMMEDIATE")
            db.executemany("INSERT INTO versions VALUES (?, ?, ?, ?, ?, ?)", map(_row, batch))
            if compacted:
                db.executemany("DELETE FROM versions WHERE revision = ?", _superseded(compacted))
                horizon = ("horizon", compacted[-1].revision)
                db.execute("INSERT OR REPLACE INTO facts VALUES (?, ?)", horizon)
            db.execute("INSERT OR REPLACE INTO facts VALUES (?, ?)", ("revision", revision))
            db.execute("COMMIT")
        except sqlite3.Error as error:
            if db.in_transaction:
                db.execute("ROLLBACK")
            raise WriteFailed(f"{self._path}: {error}") from None
        self._rows_since_checkpoint += len(batch)

    def checkpoint_if_due(self) -> None:
        """Checkpoint on a thread: waiting for the disk must not stop the event loop."""
        if self._rows_since_checkpoint >= CHECKPOINT_ROWS and self._checkpoint is None:
            self._rows_since_checkpoint = 0
            self._checkpoint = asyncio.create_task(self._run_checkpoint())

    async def _run_checkpoint(self) -> None:
        try:
            await asyncio.to_thread(_checkpoint, self._path)
        finally:
            self._checkpoint = None

    async def close(self) -> None:
        if self._checkpoint is not None:
            await self._checkpoint
        self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        self._db.close()
        self._lock.close()


def _acquire_lock(path: str) -> IO[str]:
    """A store serves reads from memory, so only one process may have its file; the lock ends with the process."""
    lock = open(f"{path}.lock", "a")  # noqa: SIM115 - held as long as the store
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        lock.close()
        raise StoreInUse(
            f"{path} is in use by another server; stop that first, or take another folder"
        ) from None
    return lock


def _row(change: Change) -> tuple[int, str, str, str, int, bytes]:
    record = change.after or change.tombstone
    assert record is not None
    return change.revision, *change.key, int(change.after is None), record.data


def _superseded(compacted: Sequence[Change]) -> Iterator[tuple[int]]:
    """Revisions of the versions before each compacted change, and of those that it deleted."""
    for change in compacted:
        if change.before is not None:
            yield (change.before.revision,)
        if change.tombstone is not None:
            yield (change.revision,)


def _checkpoint(path: str) -> None:
    db = sqlite3.connect(path)
    try:
        db.execute("PRAGMA busy_timeout=0")
        db.execute("PRAGMA wal_checkpoint(PASSIVE)")
    finally:
        db.close()
