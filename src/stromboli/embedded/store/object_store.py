"""All objects and their recent history, in memory and in SQLite.

There is one table of versions. A write adds a row; a version is dropped once a later one has left the history that
watches may ask for. So an object's current state, its history, and what it was before each change are the same rows.

Writes of one turn of the event loop share a transaction (group commit). Nobody hears of a write before it is
committed: not its author, not a watch, not a reader (`settled`). In WAL mode with `synchronous=NORMAL` a committed
transaction survives the death of the process at any point; with `FULL` it survives the loss of power too.
"""

from __future__ import annotations

import asyncio
import fcntl
import logging
import sqlite3
from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import IO, Any

import msgspec

from stromboli.embedded.store.records import Change, Key, Record

log = logging.getLogger(__name__)

HISTORY = 50_000
"""Changes that a watch may still ask for."""
CHECKPOINT = 4_000
"""Rows after which the write-ahead log is folded into the database, beside the event loop."""
_SCHEMA = """
CREATE TABLE IF NOT EXISTS versions (
    revision INTEGER PRIMARY KEY, resource TEXT NOT NULL, namespace TEXT NOT NULL, name TEXT NOT NULL,
    gone INTEGER NOT NULL, data BLOB NOT NULL
);
CREATE TABLE IF NOT EXISTS facts (name TEXT PRIMARY KEY, value INTEGER NOT NULL);
"""
Listener = Callable[[Sequence[Change]], None]


class Table:
    """The objects of one kind, by namespace and name, in the order in which lists show them."""

    def __init__(self) -> None:
        self._records: dict[tuple[str, str], Record] = {}
        self._order: list[tuple[str, str]] | None = []

    def __len__(self) -> int:
        return len(self._records)

    def get(self, namespace: str, name: str) -> Record | None:
        return self._records.get((namespace, name))

    def set(self, key: Key, record: Record | None) -> None:
        place = key[1:]
        if record is None:
            self._records.pop(place, None)
            self._order = None
        else:
            if place not in self._records:
                self._order = None
            self._records[place] = record

    def ordered(self, namespace: str = "", after: tuple[str, str] | None = None) -> Iterator[Record]:
        """From behind a place on."""
        if self._order is None:
            self._order = sorted(self._records)
        start = bisect_right(self._order, after if after is not None else (namespace, ""))
        for index in range(start, len(self._order)):
            place = self._order[index]
            if namespace and place[0] != namespace:
                return
            yield self._records[place]


class InUse(Exception):
    """Another process has this store open."""


class WriteFailed(Exception):
    """The disk did not take a write; nothing of it remains."""


class Store:
    """Reads are immediate; `put` and `remove` take effect at once and are committed together; `settled` waits."""

    def __init__(self, path: Path | str, history: int = HISTORY, power_safe: bool = False):
        self._path = str(path)
        self._history = history
        self._tables: dict[str, Table] = {}
        self._changes: deque[Change] = deque()
        self._batch: list[Change] = []
        self._committed: asyncio.Future[None] | None = None
        self._listeners: list[Listener] = []
        self._observers: list[Callable[[Change], None]] = []
        self._rows_since_checkpoint = 0
        self._checkpoint: asyncio.Task[None] | None = None
        self.revision = 0
        self.horizon = 0
        """Changes after this revision are known."""
        self._lock = _locked(self._path)
        self._db = self._open(power_safe)
        self._load()

    def _open(self, power_safe: bool) -> sqlite3.Connection:
        Path(self._path).touch(mode=0o600)  # Secrets are in it
        db = sqlite3.connect(self._path, isolation_level=None, check_same_thread=False)
        db.execute("PRAGMA journal_mode=WAL")
        db.execute(f"PRAGMA synchronous={'FULL' if power_safe else 'NORMAL'}")
        db.execute("PRAGMA wal_autocheckpoint=0")
        db.executescript(_SCHEMA)
        return db

    def _load(self) -> None:
        facts = dict(self._db.execute("SELECT name, value FROM facts"))
        self.horizon = facts.get("horizon", 0)
        self.revision = facts.get("revision", 0)
        rows = self._db.execute(
            "SELECT revision, resource, namespace, name, gone, data FROM versions ORDER BY revision"
        )
        for revision, resource, namespace, name, gone, data in rows:
            key = Key(resource, namespace, name)
            record = Record(key, revision, data)
            before = self.get(*key)
            change = Change(revision, key, before, None if gone else record, record if gone else None)
            self.table(resource).set(key, change.after)
            self.revision = max(self.revision, revision)
            if revision > self.horizon:
                self._changes.append(change)

    async def close(self) -> None:
        if self._committed is not None:
            await asyncio.wait([self._committed])
        if self._checkpoint is not None:
            await self._checkpoint
        self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        self._db.close()
        self._lock.close()

    # -- reading

    def table(self, resource: str) -> Table:
        found = self._tables.get(resource)
        if found is None:
            found = self._tables[resource] = Table()
        return found

    def get(self, resource: str, namespace: str, name: str) -> Record | None:
        return self.table(resource).get(namespace, name)

    def all(self, resource: str, namespace: str = "") -> Iterator[Record]:
        return self.table(resource).ordered(namespace)

    def resources(self) -> list[str]:
        return [name for name, table in self._tables.items() if len(table)]

    def since(self, revision: int, resource: str) -> list[Change]:
        """What happened after a revision, oldest first, committed or not; the caller has looked at `horizon`."""
        found = []
        for change in chain(reversed(self._batch), reversed(self._changes)):
            if change.revision <= revision:
                break
            if change.key.resource == resource:
                found.append(change)
        found.reverse()
        return found

    def past(self, revision: int, resource: str) -> dict[tuple[str, str], Record | None]:
        """Of objects that have changed since: what they were at that revision."""
        return {change.key[1:]: change.before for change in reversed(self.since(revision, resource))}

    # -- writing

    def put(self, key: Key, content: dict[str, Any]) -> Record:
        """Store an object under the next revision, which it is told."""
        revision = self.revision + 1
        content["metadata"]["resourceVersion"] = str(revision)
        record = Record(key, revision, msgspec.json.encode(content))
        self._append(Change(revision, key, self.get(*key), record))
        return record

    def remove(self, key: Key, content: dict[str, Any]) -> Record:
        """Forget an object; its last state is told to whoever watches."""
        revision = self.revision + 1
        content["metadata"]["resourceVersion"] = str(revision)
        gone = Record(key, revision, msgspec.json.encode(content))
        self._append(Change(revision, key, self.get(*key), None, gone))
        return gone

    def _append(self, change: Change) -> None:
        self.revision = change.revision
        self.table(change.key.resource).set(change.key, change.after)
        self._batch.append(change)
        for observer in self._observers:
            observer(change)
        if self._committed is None:
            loop = asyncio.get_running_loop()
            self._committed = loop.create_future()
            loop.call_soon(self._commit)

    async def settled(self) -> None:
        """Until everything read or written so far is committed; `WriteFailed` if it cannot be."""
        if self._committed is not None:
            await asyncio.shield(self._committed)

    def subscribe(self, listener: Listener) -> None:
        """Called with each batch once it is committed."""
        self._listeners.append(listener)

    def observe(self, observer: Callable[[Change], None]) -> None:
        """Called with each change as it takes effect, before it is committed, and with its reverse if it cannot be."""
        self._observers.append(observer)

    def _commit(self) -> None:
        batch, self._batch = self._batch, []
        done, self._committed = self._committed, None
        assert done is not None
        forgotten = self._forgettable(len(batch))
        try:
            self._write(batch, forgotten)
        except sqlite3.Error as error:
            self._undo(batch)
            done.set_exception(WriteFailed(f"{self._path}: {error}"))
            done.exception()  # nobody may be waiting
            return
        for _ in range(len(forgotten)):
            self.horizon = self._changes.popleft().revision
        self._changes.extend(batch)
        done.set_result(None)
        for listener in self._listeners:
            try:
                listener(batch)
            except Exception:  # what one cannot stand, the others must hear of all the same
                log.exception("changes %d to %d", batch[0].revision, batch[-1].revision)
        self._rows_since_checkpoint += len(batch)
        if self._rows_since_checkpoint >= CHECKPOINT and self._checkpoint is None:
            self._rows_since_checkpoint = 0
            self._checkpoint = asyncio.create_task(self._fold())

    def _forgettable(self, coming: int) -> list[Change]:
        """The oldest changes, as far as there are too many; in larger portions, so that it is seldom."""
        surplus = len(self._changes) + coming - self._history
        if surplus <= 0:
            return []
        return [self._changes[index] for index in range(min(len(self._changes), surplus + coming))]

    def _write(self, batch: Sequence[Change], forgotten: Sequence[Change]) -> None:
        db = self._db
        db.execute("BEGIN IMMEDIATE")
        try:
            db.executemany("INSERT INTO versions VALUES (?, ?, ?, ?, ?, ?)", map(_row, batch))
            if forgotten:
                db.executemany("DELETE FROM versions WHERE revision = ?", _superseded(forgotten))
                fact = ("horizon", forgotten[-1].revision)
                db.execute("INSERT OR REPLACE INTO facts VALUES (?, ?)", fact)
            last = ("revision", batch[-1].revision if batch else self.revision)
            db.execute("INSERT OR REPLACE INTO facts VALUES (?, ?)", last)
            db.execute("COMMIT")
        except sqlite3.Error:
            if db.in_transaction:
                db.execute("ROLLBACK")
            raise

    def _undo(self, batch: Sequence[Change]) -> None:
        for change in reversed(batch):
            self.table(change.key.resource).set(change.key, change.before)
            for observer in self._observers:
                observer(change._replace(before=change.after, after=change.before))

    def compact(self) -> None:
        """Forget all history: watches can only begin with a list."""
        forgotten = list(self._changes)
        self._write([], forgotten)
        self._changes.clear()
        self.horizon = self.revision

    async def _fold(self) -> None:
        """Fold the log into the database on a thread: waiting for the disk must not stop the loop."""
        try:
            await asyncio.to_thread(_checkpoint, self._path)
        finally:
            self._checkpoint = None


def _locked(path: str) -> IO[str]:
    """What is in memory is the truth, so only one process may have a file; the lock ends with it."""
    lock = open(f"{path}.lock", "a")  # noqa: SIM115 - held as long as the store
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        lock.close()
        raise InUse(f"{path} is in use by another server; stop that first, or take another folder") from None
    return lock


def _row(change: Change) -> tuple[int, str, str, str, int, bytes]:
    record = change.after or change.gone
    assert record is not None
    return change.revision, *change.key, int(change.after is None), record.data


def _superseded(forgotten: Sequence[Change]) -> Iterator[tuple[int]]:
    """Versions that nobody needs any more: those before a forgotten change, and what it deleted."""
    for change in forgotten:
        if change.before is not None:
            yield (change.before.revision,)
        if change.gone is not None:
            yield (change.revision,)


def _checkpoint(path: str) -> None:
    db = sqlite3.connect(path)
    try:
        db.execute("PRAGMA busy_timeout=0")
        db.execute("PRAGMA wal_checkpoint(PASSIVE)")
    finally:
        db.close()
