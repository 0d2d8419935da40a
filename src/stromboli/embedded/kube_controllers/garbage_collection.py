"""What is owned goes with its owner: at once, before it (foreground), or not at all (orphan)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from stromboli.embedded.auth.identity import SYSTEM
from stromboli.embedded.kinds.status_errors import Refusal
from stromboli.embedded.objects.deletion import FOREGROUND, ORPHAN, DeleteOptions, Preconditions, delete
from stromboli.embedded.objects.object_verbs import Objects, Options
from stromboli.embedded.store.records import Change, Key, Record

Content = dict[str, Any]
_OPTIONS = Options(SYSTEM, manager="garbage-collector")


class Garbage:
    """Who owns whom, by uid; `heard` says what needs a look, `look` takes it."""

    def __init__(self, objects: Objects):
        self._objects = objects
        self._where: dict[str, Key] = {}
        self._owned: dict[str, set[Key]] = {}

    def learn(self, record: Record) -> None:
        """An object that was there before."""
        self._where[record.meta.uid] = record.key
        for owner in record.meta.owner_references or ():
            self._owned.setdefault(owner.uid, set()).add(record.key)

    def heard(self, change: Change) -> Iterator[Key]:
        """Note a change; the objects that have to be looked at because of it."""
        if change.before is not None:
            for owner in change.before.meta.owner_references or ():
                self._disown(owner.uid, change.key)
            self._where.pop(change.before.meta.uid, None)
        if change.after is not None:
            self.learn(change.after)
            meta = change.after.meta
            if meta.owner_references or (meta.deletion_timestamp and meta.finalizers):
                yield change.key
            return
        if change.before is not None:
            yield from tuple(self._owned.get(change.before.meta.uid, ()))
            for owner in change.before.meta.owner_references or ():
                if owner.uid in self._where:
                    yield self._where[owner.uid]

    def _disown(self, uid: str, key: Key) -> None:
        left = self._owned.get(uid)
        if left is not None:
            left.discard(key)
            if not left:
                del self._owned[uid]

    def everything(self) -> Iterator[Key]:
        """What has owners, or waits for what it owns: at a start, when nobody knows what was missed."""
        for keys in self._owned.values():
            yield from keys
        yield from (self._where[uid] for uid in self._owned if uid in self._where)

    async def look(self, key: Key) -> None:
        """Do what is due to one object."""
        record = self._objects.store.get(*key)
        if record is None:
            return
        meta = record.meta
        finalizers = (meta.finalizers or ()) if meta.deletion_timestamp else ()
        if ORPHAN in finalizers:
            self._release(record)
        elif FOREGROUND in finalizers:
            await self._clear(record)
        if meta.owner_references:
            await self._judge(record)

    def _release(self, owner: Record) -> None:
        """Let go of all that an object owns, and then of itself."""
        uid = owner.meta.uid
        for record in self._dependents(uid):
            self._objects.mend(record, lambda content: _without_owners(content, {uid}))
        self._objects.mend(owner, lambda content: _without_finalizer(content, ORPHAN))

    async def _clear(self, owner: Record) -> None:
        """Delete all that an object owns; it goes once nothing is left that should go before it."""
        uid = owner.meta.uid
        waiting = False
        refused: Refusal | None = None
        for record in list(self._dependents(uid)):
            blocks = any(
                one.uid == uid and one.block_owner_deletion for one in record.meta.owner_references or ()
            )
            others = [one.uid for one in record.meta.owner_references or () if one.uid != uid]
            if any(one in self._where for one in others):
                self._objects.mend(record, lambda content: _without_owners(content, {uid}))
                continue
            if not record.meta.deletion_timestamp:
                try:
                    await self._delete(record)
                except Refusal as refusal:  # the others go all the same
                    refused = refusal if refusal.code != 404 else refused
            waiting = waiting or (blocks and self._objects.store.get(*record.key) is not None)
        if refused is not None:
            raise refused
        if not waiting:
            self._objects.mend(owner, lambda content: _without_finalizer(content, FOREGROUND))

    async def _judge(self, record: Record) -> None:
        """Delete what nobody owns any more; forget owners that are gone while others are there."""
        owners = {one.uid for one in record.meta.owner_references or ()}
        gone = {uid for uid in owners if not self._lives(uid, record.key.namespace)}
        if gone and gone == owners and not record.meta.deletion_timestamp:
            await self._delete(record)
        elif gone and gone != owners:
            self._objects.mend(record, lambda content: _without_owners(content, gone))

    def _lives(self, uid: str, namespace: str) -> bool:
        """Owners are in the same namespace, or in none."""
        key = self._where.get(uid)
        return key is not None and key.namespace in ("", namespace)

    def _dependents(self, uid: str) -> Iterator[Record]:
        for key in sorted(self._owned.get(uid, ())):
            record = self._objects.store.get(*key)
            if record is not None:
                yield record

    async def _delete(self, record: Record) -> None:
        kind = self._objects.registry.by_id(record.key.resource)
        if kind is None:
            return
        policy = "Foreground" if self._owned.get(record.meta.uid) else "Background"
        this_one = Preconditions(uid=record.meta.uid)
        asked = DeleteOptions(propagation_policy=policy, preconditions=this_one)
        await delete(self._objects, kind, record.key.namespace, record.key.name, asked, _OPTIONS)


def _without_owners(content: Content, uids: set[str]) -> None:
    meta = content["metadata"]
    left = [one for one in meta.get("ownerReferences") or () if one.get("uid") not in uids]
    if left:
        meta["ownerReferences"] = left
    else:
        meta.pop("ownerReferences", None)


def _without_finalizer(content: Content, name: str) -> None:
    meta = content["metadata"]
    left = [one for one in meta.get("finalizers") or () if one != name]
    if left:
        meta["finalizers"] = left
    else:
        meta.pop("finalizers", None)
