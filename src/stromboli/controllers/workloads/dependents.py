"""The objects of one kind that the owners of a controller have: found, adopted, released, created and deleted."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from typing import Any, Generic, TypeVar

from stromboli.api.patches import STRATEGIC
from stromboli.api.selectors import matches_labels
from stromboli.api.types.meta import Object
from stromboli.controllers.api_writer import BACKGROUND, decode_response
from stromboli.controllers.owner_references import controller_of, controller_uid, owned_by, owner_key
from stromboli.controllers.pending_writes import PendingWrites
from stromboli.controllers.reconciler import SyncError
from stromboli.controllers.workloads.adoption import adoption_patch, claims, release_patch
from stromboli.controllers.workloads.workload_controller import WorkloadController
from stromboli.controllers.workloads.workload_kinds import SelectingWorkload

Kind = TypeVar("Kind", bound=Object)
_NO_LABEL = ("", "")


def orphan_namespace(obj: Object) -> tuple[Hashable, ...]:
    """Index function: the namespace of an object that has no controller."""
    return () if controller_uid(obj) else (obj.namespace,)


def selected_label(owner: Object) -> tuple[tuple[str, str, str], ...]:
    """Index function: the namespace of an owner, and one of the labels that it selects by, if it names any.

    So the owners that may select an object are found by its labels, however many others there are.
    """
    selector = owner.selector if isinstance(owner, SelectingWorkload) else None
    if selector is None:
        return ()
    return ((owner.namespace, *min(selector.match_labels.items(), default=_NO_LABEL)),)


class Dependents(Generic[Kind]):
    """`of` and `claim` find those of an owner; `create` and `delete` are remembered until the store shows them."""

    def __init__(self, controller: WorkloadController[Any], kind: type[Kind]) -> None:
        """Every change of an object enqueues its owner, or whoever may adopt it."""
        self.kind = kind
        self.controller = controller
        self.context = controller.context
        self.store = controller.watch(kind, self._changed)
        self._owned = self.store.index(owned_by)
        self._orphans = self.store.index(orphan_namespace)
        self._selecting = controller.owners.index(selected_label)
        self._pending: dict[str, PendingWrites[Kind]] = {}
        """By the owner's uid."""
        controller.on_owner_gone.append(lambda owner: self._pending.pop(owner.metadata.uid, None))

    # -- changes

    def _changed(self, before: Kind | None, now: Kind | None) -> Iterable[str]:
        for obj in (before, now):
            controller = controller_of(obj) if obj is not None else None
            if obj is not None and controller is not None:
                self._observed(controller.uid, obj, now is None)
                if (controller.api_version, controller.kind) == self.controller.owner_type:
                    yield f"{obj.namespace}/{controller.name}"
        if now is not None and not controller_uid(now) and _may_be_adopted(before, now):
            yield from self._keys_selecting(now)

    def _keys_selecting(self, obj: Kind) -> Iterator[str]:
        """Of the owners that select an object."""
        labels = obj.metadata.labels
        for label in (_NO_LABEL, *labels.items()):
            for owner in self._selecting.unordered((obj.namespace, *label)):
                if isinstance(owner, SelectingWorkload) and matches_labels(owner.selector, labels):
                    yield owner.key

    def _observed(self, owner_uid: str, obj: Kind, gone: bool) -> None:
        pending = self._pending.get(owner_uid)
        if pending is None:
            return
        if gone:
            pending.gone(obj)
        else:
            pending.observed(obj)
        if not pending:
            del self._pending[owner_uid]

    # -- reading

    def of(self, owner: Object) -> list[Kind]:
        """All objects that the owner controls, as they are after our writes."""
        stored = self._owned.unordered(owner_key(owner))
        pending = self._pending.get(owner.metadata.uid)
        return stored if pending is None else pending.apply(stored, self.context.clock())

    def look_again(self, owner: Object, *waits: float | None) -> float | None:
        """The first of seconds after which to sync an owner, which is also done in case a write is never shown."""
        pending = self._pending.get(owner.metadata.uid)
        until = pending.until if pending is not None else None
        late = None if until is None else max(0.0, until - self.context.clock())
        return min((wait for wait in (*waits, late) if wait is not None), default=None)

    async def claim(
        self,
        owner: SelectingWorkload,
        objects: Iterable[Kind] | None = None,
        is_member: Callable[[Kind], bool] = lambda obj: True,
    ) -> list[Kind]:
        """The objects of the owner, once orphans were adopted and others released; by default of all that there are."""
        with self.controller.computing(owner):
            if objects is None:
                objects = [*self.of(owner), *self._orphans_for(owner)]
            decided = claims(owner, owner.selector, objects, is_member)
        await asyncio.sleep(0)  # of thousands of objects this takes as long as what the sync does next
        for obj in decided.released:
            patch = self.release_patch(owner, obj)
            patched = await self.context.writer.patch(obj, patch, exact=False, patch_type=STRATEGIC)
            self.store.mutated(patched)
        adopted = [await self._adopt(owner, obj) for obj in decided.adopted]
        return [*decided.kept, *(obj for obj in adopted if obj is not None)]

    def _orphans_for(self, owner: SelectingWorkload) -> list[Kind]:
        """The objects of the namespace that nobody controls, but for most that the owner does not select."""
        orphans = self._orphans.unordered(owner.namespace)
        for _, key, value in selected_label(owner):
            if key:
                return [obj for obj in orphans if obj.metadata.labels.get(key) == value]
        return orphans

    async def _adopt(self, owner: SelectingWorkload, obj: Kind) -> Kind | None:
        """Only for an owner that exists now and is not being deleted, whatever the store says."""
        fresh = await self.context.writer.read(type(owner), owner.name, owner.namespace)
        if fresh is None or fresh.metadata.uid != owner.metadata.uid:
            raise SyncError(f"{owner.subject} is gone, and adopts nothing")
        if fresh.metadata.deletion_timestamp is not None:
            raise SyncError(f"{owner.subject} is being deleted, and adopts nothing")
        patch = self.adoption_patch(owner, obj)
        adopted = await self.context.writer.patch(obj, patch, exact=False, patch_type=STRATEGIC)
        self.store.mutated(adopted)
        return adopted

    def adoption_patch(self, owner: SelectingWorkload, obj: Kind) -> dict[str, Any]:
        return adoption_patch(owner)

    def release_patch(self, owner: SelectingWorkload, obj: Kind) -> dict[str, Any]:
        return release_patch(owner)

    # -- writing

    async def create(self, owner: Object, manifest: Mapping[str, Any]) -> Kind | None:
        """Create an object of the owner; None if the name is taken."""
        answer = await self.context.writer.create(self.kind, manifest, owner.namespace)
        if answer is None:
            return None
        return self.created(owner, decode_response(self.kind, answer))

    def created(self, owner: Object, obj: Kind) -> Kind:
        """Take note of a new object of the owner, as the API server has it."""
        if self.store.get(obj.key) is None:
            pending = self._pending.setdefault(owner.metadata.uid, PendingWrites())
            pending.created(obj, self.context.clock())
        return obj

    def knows(self, owner: Object, name: str) -> bool:
        """Whether an object of that name exists, by the store or by our writes."""
        pending = self._pending.get(owner.metadata.uid)
        return self.store.get(name, owner.namespace) is not None or (
            pending is not None and pending.has_created(name)
        )

    def patched(self, obj: Kind, answer: Kind | None) -> None:
        """Take note of the answer to a patch: the object as it is now, None if it is gone."""
        self.store.mutated(answer)
        for uid in controller_uid(obj):
            if pending := self._pending.get(uid):
                pending.patched(obj, answer)

    async def delete(self, owner: Object, obj: Kind, propagation: str = BACKGROUND) -> bool:
        """Delete an object of the owner; False if it was gone."""
        pending = self._pending.setdefault(owner.metadata.uid, PendingWrites())
        pending.deleted(obj, self.context.clock())
        try:
            return await self.context.writer.delete(obj, propagation)
        except BaseException:
            pending.not_deleted(obj)
            raise


def _may_be_adopted(before: Object | None, now: Object) -> bool:
    """Whether an object without a controller is new, has lost its controller, or has other labels."""
    return before is None or bool(controller_uid(before)) or before.metadata.labels != now.metadata.labels
