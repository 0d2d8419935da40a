"""All objects and their recent history, in memory and in SQLite.

Writes that come while the last transaction is on its way to the disk share the next (group commit). No write is visible
before it is committed: not to its author, nor to a watch, nor to a reader (`wait_committed`).
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections import deque
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from itertools import chain
from pathlib import Path
from typing import Any

import msgspec

from stromboli.embedded.store.history import HISTORY_BYTES, HISTORY_LIMIT, History
from stromboli.embedded.store.object_table import ObjectTable
from stromboli.embedded.store.records import Change, Key, Record
from stromboli.embedded.store.stored_rows import explained_damage, explained_row
from stromboli.embedded.store.version_log import (
    LARGEST_TRANSACTION,
    Compaction,
    DiskFull,
    VersionLog,
    WriteFailed,
    row_bytes,
)

log = logging.getLogger(__name__)

CommitListener = Callable[[Sequence[Change]], None]


class ObjectTooLarge(Exception):
    """An object with more bytes than its author may write."""


class Store:
    """Reads are immediate; `put` and `remove` take effect at once and are committed together."""

    def __init__(
        self,
        path: Path | str,
        history: int = HISTORY_LIMIT,
        power_safe: bool = False,
        history_bytes: int = HISTORY_BYTES,
    ):
        self._tables: dict[str, ObjectTable] = {}
        self.history = History(history, history_bytes)
        self._uncommitted: deque[Change] = deque()
        self._waiting: deque[tuple[int, asyncio.Future[None]]] = deque()
        """Those who wait for the commit of a revision, in its order."""
        self._writer: asyncio.Task[None] | None = None
        self._last_failure: WriteFailed | None = None
        """Of the last transaction."""
        self._commit_listeners: list[CommitListener] = []
        self._compaction_listeners: list[Callable[[int], None]] = []
        self._apply_listeners: list[Callable[[Change], None]] = []
        self._followers: list[Callable[[], Awaitable[None]]] = []
        with explained_damage(path):
            self._log = VersionLog(path, power_safe)
            try:
                self.revision, self.compacted_revision = self._log.revisions()
                """History has the changes after `compacted_revision`."""
                self._load()
            except BaseException:
                self._log.abandon()
                raise

    def _load(self) -> None:
        """Read the file; what is beyond the limits of history, since they were others, is dropped at once."""
        compactions: list[Compaction] = []
        for record, deleted in self._log.versions():
            key, revision = record.key, record.revision
            after, tombstone = (None, record) if deleted else (record, None)
            change = Change(revision, key, self.get(*key), after, tombstone)
            self.table(key.resource).set(key, after)
            self.revision = max(self.revision, revision)
            if revision > self.compacted_revision:
                if compaction := self.history.surplus([change]):
                    compactions.append(compaction)
                    self._drop(compaction)
                self.history.extend([change])
        for compaction in compactions:
            self._log.write_now([], compaction, self.revision)

    async def close(self) -> None:
        if self._writer is not None:
            await asyncio.wait([self._writer])
        await self._log.close()

    # -- reading

    def table(self, resource: str) -> ObjectTable:
        table = self._tables.get(resource)
        if table is None:
            table = self._tables[resource] = ObjectTable()
        return table

    def get(self, resource: str, namespace: str, name: str) -> Record | None:
        return self.table(resource).get(namespace, name)

    def list(self, resource: str, namespace: str = "") -> Iterator[Record]:
        return self.table(resource).ordered(namespace)

    def reading(self, record: Record) -> AbstractContextManager[None]:
        """While the server starts and makes sense of an object: if that is impossible, its row is damaged."""
        return explained_row(self._log.path, record)

    def resources(self) -> Sequence[str]:
        return [name for name, table in self._tables.items() if len(table)]

    def changes_since(self, revision: int, resource: str) -> Sequence[Change]:
        """Changes after a revision, oldest first, committed or not; the caller has compared `compacted_revision`."""
        changes = []
        for change in chain(reversed(self._uncommitted), reversed(self.history)):
            if change.revision <= revision:
                break
            if change.key.resource == resource:
                changes.append(change)
        changes.reverse()
        return changes

    def versions_at(self, revision: int, resource: str) -> dict[tuple[str, str], Record | None]:
        """Of objects that have changed since a revision: their versions at that revision."""
        return {change.key[1:]: change.before for change in reversed(self.changes_since(revision, resource))}

    # -- writing

    def put(self, key: Key, content: dict[str, Any], largest: float = math.inf) -> Record:
        """Store an object at the next revision, which becomes its resourceVersion; `largest` is in bytes."""
        record = self._next_version(key, content)
        if len(record.data) > largest:
            raise ObjectTooLarge
        self._append(Change(record.revision, key, self.get(*key), record))
        return record

    def remove(self, key: Key, content: dict[str, Any]) -> Record:
        """Delete an object; watches are sent its last state."""
        tombstone = self._next_version(key, content)
        self._append(Change(tombstone.revision, key, self.get(*key), None, tombstone))
        return tombstone

    def _next_version(self, key: Key, content: dict[str, Any]) -> Record:
        revision = self.revision + 1
        content["metadata"]["resourceVersion"] = str(revision)
        return Record(key, revision, msgspec.json.encode(content))

    def _append(self, change: Change) -> None:
        self.revision = change.revision
        self.table(change.key.resource).set(change.key, change.after)
        self._uncommitted.append(change)
        for listener in self._apply_listeners:
            listener(change)
        self._start_writer()

    def _start_writer(self) -> asyncio.Task[None]:
        if self._writer is None:
            self._writer = asyncio.create_task(self._write(), name="store")
        return self._writer

    @property
    def disk_full(self) -> bool:
        """Whether the last write found no room on the disk, and there still is none."""
        return isinstance(self._last_failure, DiskFull) and self._last_failure.lasts

    async def wait_committed(self) -> None:
        """Until everything read or written so far is committed; `WriteFailed` if it cannot be."""
        if not self._uncommitted:
            return
        revision = self._uncommitted[-1].revision
        if not self._waiting or self._waiting[-1][0] != revision:
            self._waiting.append((revision, asyncio.get_running_loop().create_future()))
        await asyncio.shield(self._waiting[-1][1])

    def on_commit(self, listener: CommitListener) -> None:
        """Called with each batch once it is committed."""
        self._commit_listeners.append(listener)

    def wait_for(self, caught_up: Callable[[], Awaitable[None]]) -> None:
        """Before the next transaction: nobody falls behind by more than one, however much is written."""
        self._followers.append(caught_up)

    def on_compaction(self, listener: Callable[[int], None]) -> None:
        """Called with the revision up to which history has just been dropped."""
        self._compaction_listeners.append(listener)

    def on_apply(self, listener: Callable[[Change], None]) -> None:
        """Called with each change as it takes effect, before its commit, and with the reverse if that fails."""
        self._apply_listeners.append(listener)

    async def _write(self) -> None:
        """Write until nothing is left: a transaction at a time, and what the file needs in between."""
        try:
            while await self._write_batch() or self._log.upkeep_due:
                if self._log.upkeep_due:
                    await self._log.upkeep()
                for caught_up in self._followers:
                    await caught_up()
        except WriteFailed as error:
            self._roll_back(error)
        finally:
            self._writer = None

    async def _write_batch(self) -> bool:
        """Commit the next changes, and compact history; False if there is nothing to do."""
        batch = self._next_batch()
        compaction = self.history.surplus(batch)
        if not batch and compaction is None:
            return False
        await self._log.write(batch, compaction, batch[-1].revision if batch else self.revision)
        if compaction is not None:
            self._drop(compaction)
        if batch:
            self._publish(batch)
        return True

    def _next_batch(self) -> Sequence[Change]:
        """The oldest uncommitted changes, as many as go into one transaction."""
        batch, size = list[Change](), 0
        for change in self._uncommitted:
            size += row_bytes(change)
            if batch and size > LARGEST_TRANSACTION:
                break
            batch.append(change)
        return batch

    def _publish(self, batch: Sequence[Change]) -> None:
        """Tell those who wait, and the listeners, of what is committed."""
        self._last_failure = None
        for _ in batch:
            self._uncommitted.popleft()
        self.history.extend(batch)
        while self._waiting and self._waiting[0][0] <= batch[-1].revision:
            self._waiting.popleft()[1].set_result(None)
        for listener in self._commit_listeners:
            try:
                listener(batch)
            except Exception:  # the other listeners are called all the same
                log.exception("changes %d to %d", batch[0].revision, batch[-1].revision)
        for change in batch:
            for record in filter(None, (change.before, change.tombstone)):
                record.supersede()

    def _roll_back(self, error: WriteFailed) -> None:
        """Undo everything that is not committed: later changes were made on top of those that failed."""
        self._last_failure = error
        for change in reversed(self._uncommitted):
            self.table(change.key.resource).set(change.key, change.before)
            for listener in self._apply_listeners:
                listener(change._replace(before=change.after, after=change.before))
        self._uncommitted.clear()
        for _, future in self._waiting:
            future.set_exception(error)
            future.exception()  # nobody may be waiting
        self._waiting.clear()

    def _drop(self, compaction: Compaction) -> None:
        self.history.drop(compaction.revision)
        self.compacted_revision = compaction.revision
        for listener in self._compaction_listeners:
            listener(compaction.revision)

    async def compact(self) -> None:
        """Drop all history: watches can only begin with a list."""
        await self.wait_committed()
        self.history.expire()
        await asyncio.wait([self._start_writer()])
