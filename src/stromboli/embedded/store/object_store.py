"""All objects and their recent history, in memory and in SQLite.

Writes of one turn of the event loop share a transaction (group commit). No write is visible before it is committed:
not to its author, nor to a watch, nor to a reader (`wait_committed`).
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import msgspec

from stromboli.embedded.store.object_table import ObjectTable
from stromboli.embedded.store.records import Change, Key, Record
from stromboli.embedded.store.version_log import VersionLog, WriteFailed

log = logging.getLogger(__name__)

HISTORY_LIMIT = 50_000
"""Changes that a watch may still ask for."""
CommitListener = Callable[[Sequence[Change]], None]


class ObjectTooLarge(Exception):
    """An object with more bytes than its author may write."""


class Store:
    """Reads are immediate; `put` and `remove` take effect at once and are committed together."""

    def __init__(self, path: Path | str, history: int = HISTORY_LIMIT, power_safe: bool = False):
        self._history = history
        self._tables: dict[str, ObjectTable] = {}
        self._changes: deque[Change] = deque()
        self._batch: list[Change] = []
        self._committed: asyncio.Future[None] | None = None
        self._commit_listeners: list[CommitListener] = []
        self._apply_listeners: list[Callable[[Change], None]] = []
        self._log = VersionLog(path, power_safe)
        self.revision, self.compacted_revision = self._log.revisions()
        """History has the changes after `compacted_revision`."""
        self._load()

    def _load(self) -> None:
        for record, deleted in self._log.versions():
            key, revision = record.key, record.revision
            after, tombstone = (None, record) if deleted else (record, None)
            change = Change(revision, key, self.get(*key), after, tombstone)
            self.table(key.resource).set(key, after)
            self.revision = max(self.revision, revision)
            if revision > self.compacted_revision:
                self._changes.append(change)

    async def close(self) -> None:
        if self._committed is not None:
            await asyncio.wait([self._committed])
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

    def resources(self) -> Sequence[str]:
        return [name for name, table in self._tables.items() if len(table)]

    def changes_since(self, revision: int, resource: str) -> Sequence[Change]:
        """Changes after a revision, oldest first, committed or not; the caller has compared `compacted_revision`."""
        changes = []
        for change in chain(reversed(self._batch), reversed(self._changes)):
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
        self._batch.append(change)
        for listener in self._apply_listeners:
            listener(change)
        if self._committed is None:
            loop = asyncio.get_running_loop()
            self._committed = loop.create_future()
            loop.call_soon(self._commit)

    async def wait_committed(self) -> None:
        """Until everything read or written so far is committed; `WriteFailed` if it cannot be."""
        if self._committed is not None:
            await asyncio.shield(self._committed)

    def on_commit(self, listener: CommitListener) -> None:
        """Called with each batch once it is committed."""
        self._commit_listeners.append(listener)

    def on_apply(self, listener: Callable[[Change], None]) -> None:
        """Called with each change as it takes effect, before its commit, and with the reverse if that fails."""
        self._apply_listeners.append(listener)

    def _commit(self) -> None:
        batch, self._batch = self._batch, []
        done, self._committed = self._committed, None
        assert done is not None
        compacted = self._beyond_history(len(batch))
        try:
            self._log.write(batch, compacted, batch[-1].revision)
        except WriteFailed as error:
            self._roll_back(batch)
            done.set_exception(error)
            done.exception()  # nobody may be waiting
            return
        for _ in range(len(compacted)):
            self.compacted_revision = self._changes.popleft().revision
        self._changes.extend(batch)
        done.set_result(None)
        for listener in self._commit_listeners:
            try:
                listener(batch)
            except Exception:  # the other listeners are called all the same
                log.exception("changes %d to %d", batch[0].revision, batch[-1].revision)
        self._log.checkpoint_if_due()

    def _beyond_history(self, coming: int) -> Sequence[Change]:
        """The oldest changes beyond the history limit, and as many more as are coming, so that this is seldom."""
        surplus = len(self._changes) + coming - self._history
        if surplus <= 0:
            return []
        return [self._changes[index] for index in range(min(len(self._changes), surplus + coming))]

    def _roll_back(self, batch: Sequence[Change]) -> None:
        for change in reversed(batch):
            self.table(change.key.resource).set(change.key, change.before)
            for listener in self._apply_listeners:
                listener(change._replace(before=change.after, after=change.before))

    def compact(self) -> None:
        """Drop all history: watches can only begin with a list."""
        self._log.write([], list(self._changes), self.revision)
        self._changes.clear()
        self.compacted_revision = self.revision
