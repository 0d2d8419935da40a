"""Garbage collection: dependents go with their owner, in the background, before it (foreground), or not (orphan)."""

from __future__ import annotations

from collections.abc import Iterator

from stromboli.embedded.api_status import StatusError
from stromboli.embedded.kinds.kind import Content
from stromboli.embedded.kinds.object_metadata import remove_finalizer, set_entries
from stromboli.embedded.kube_controllers.controller import ServerContext, StoreController
from stromboli.embedded.objects.deletion import FOREGROUND, ORPHAN
from stromboli.embedded.store.records import Change, Key, Record
from stromboli.embedded.time_slices import TimeSlices


class GarbageCollector(StoreController):
    """The graph of owner references, by uid."""

    name = component = "garbage-collector"

    def __init__(self, context: ServerContext) -> None:
        super().__init__(context)
        self._keys: dict[str, Key] = {}
        self._dependents: dict[str, set[Key]] = {}

    def initial_keys(self) -> Iterator[Key]:
        """Everything with owners or dependents: what was missed is not known."""
        store = self._objects.store
        for resource in store.resources():
            for record in store.list(resource):
                self._add(record)
                if record.meta.deletion_timestamp and record.meta.finalizers:
                    yield record.key
        for keys in self._dependents.values():
            yield from keys
        yield from (self._keys[uid] for uid in self._dependents if uid in self._keys)

    def _add(self, record: Record) -> None:
        self._keys[record.meta.uid] = record.key
        for owner in record.meta.owner_references or ():
            self._dependents.setdefault(owner.uid, set()).add(record.key)

    def keys_for(self, change: Change) -> Iterator[Key]:
        if change.before is not None:
            for owner in change.before.meta.owner_references or ():
                self._remove_dependent(owner.uid, change.key)
            self._keys.pop(change.before.meta.uid, None)
        if change.after is not None:
            self._add(change.after)
            meta = change.after.meta
            if meta.owner_references or (meta.deletion_timestamp and meta.finalizers):
                yield change.key
            return
        if change.before is not None:
            yield from tuple(self._dependents.get(change.before.meta.uid, ()))
            for owner in change.before.meta.owner_references or ():
                if owner.uid in self._keys:
                    yield self._keys[owner.uid]

    def _remove_dependent(self, uid: str, key: Key) -> None:
        dependents = self._dependents.get(uid)
        if dependents is not None:
            dependents.discard(key)
            if not dependents:
                del self._dependents[uid]

    async def reconcile(self, key: Key) -> None:
        record = self._objects.store.get(*key)
        if record is None:
            return
        meta = record.meta
        finalizers = (meta.finalizers or ()) if meta.deletion_timestamp else ()
        if ORPHAN in finalizers:
            await self._orphan_dependents(record)
        elif FOREGROUND in finalizers:
            await self._delete_dependents(record)
        if meta.owner_references:
            await self._delete_if_unowned(record)

    async def _orphan_dependents(self, owner: Record) -> None:
        slices = TimeSlices()
        for dependent in self._dependents_of(owner.meta.uid):
            self._remove_owners(dependent, {owner.meta.uid})
            if slices.due:
                await slices.pause()
        self._remove_finalizer(owner, ORPHAN)

    async def _delete_dependents(self, owner: Record) -> None:
        """Foreground deletion: the owner goes once no dependent is left that blocks it."""
        uid = owner.meta.uid
        blocked = False
        failure: StatusError | None = None
        slices = TimeSlices()
        for dependent in self._dependents_of(uid):
            if slices.due:
                await slices.pause()
            references = dependent.meta.owner_references or ()
            if any(other.uid != uid and other.uid in self._keys for other in references):
                self._remove_owners(dependent, {uid})
                continue
            if not dependent.meta.deletion_timestamp:
                try:
                    policy = "Foreground" if self._dependents.get(dependent.meta.uid) else ""
                    await self._delete(dependent, policy)
                except StatusError as error:  # the others are deleted all the same
                    failure = error if error.code != 404 else failure
            blocks = any(reference.uid == uid and reference.block_owner_deletion for reference in references)
            blocked = blocked or (blocks and self._objects.store.get(*dependent.key) is not None)
        if failure is not None:
            raise failure
        if not blocked:
            self._remove_finalizer(owner, FOREGROUND)

    async def _delete_if_unowned(self, record: Record) -> None:
        """Delete an object whose owners are all gone; otherwise remove the references to those that are."""
        owners = {owner.uid for owner in record.meta.owner_references or ()}
        absent = {uid for uid in owners if not self._owner_exists(uid, record.key.namespace)}
        if absent and absent == owners and not record.meta.deletion_timestamp:
            await self._delete(record)
        elif absent and absent != owners:
            self._remove_owners(record, absent)

    def _owner_exists(self, uid: str, namespace: str) -> bool:
        """In the same namespace, or cluster-scoped."""
        key = self._keys.get(uid)
        return key is not None and key.namespace in ("", namespace)

    def _dependents_of(self, uid: str) -> Iterator[Record]:
        for key in sorted(self._dependents.get(uid, ())):
            record = self._objects.store.get(*key)
            if record is not None:
                yield record

    def _remove_owners(self, record: Record, uids: set[str]) -> None:
        def change(content: Content) -> None:
            meta = content["metadata"]
            owners = [owner for owner in meta.get("ownerReferences") or () if owner.get("uid") not in uids]
            set_entries(meta, "ownerReferences", owners)

        self._objects.system_update(record, change)

    def _remove_finalizer(self, record: Record, name: str) -> None:
        self._objects.system_update(record, lambda content: remove_finalizer(content, name))
