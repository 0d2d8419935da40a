"""Namespaces: each has a default service account, and takes all its objects along when it is deleted."""

from __future__ import annotations

from collections.abc import Iterator

from stromboli.embedded.kube_controllers.controller import Controller
from stromboli.embedded.objects.deletion import delete_all
from stromboli.embedded.objects.object_verbs import Objects
from stromboli.embedded.store.records import Change, Key

NAMESPACES = "namespaces"
SERVICE_ACCOUNTS = "serviceaccounts"


class NamespaceController(Controller):
    def __init__(self, objects: Objects):
        super().__init__(objects)
        self._terminating: set[str] = set()

    def initial_keys(self) -> Iterator[Key]:
        return (record.key for record in self._objects.store.list(NAMESPACES))

    def keys_for(self, change: Change) -> Iterator[Key]:
        key = change.key
        if key.resource == NAMESPACES:
            yield key
        elif change.after is None and (
            key.resource == SERVICE_ACCOUNTS or key.namespace in self._terminating
        ):
            yield Key(NAMESPACES, "", key.namespace)

    async def reconcile(self, key: Key) -> None:
        if key.resource != NAMESPACES or (record := self._objects.store.get(*key)) is None:
            return
        if not record.meta.deletion_timestamp:
            await self._ensure_service_account(key.name)
            return
        self._terminating.add(key.name)
        kinds = {kind.id: kind for kind in self._objects.registry if kind.namespaced}
        if not await delete_all(self._objects, kinds.values(), key.name):
            self._objects.system_update(record, lambda content: content.update(spec={}))
            self._terminating.discard(key.name)

    async def _ensure_service_account(self, namespace: str) -> None:
        if self._objects.store.get(SERVICE_ACCOUNTS, namespace, "default") is None:
            await self._create(SERVICE_ACCOUNTS, namespace, {"metadata": {"name": "default"}})
