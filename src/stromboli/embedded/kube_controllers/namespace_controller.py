"""Namespaces: each has a default service account and the CA bundle, and is deleted with all its objects."""

from __future__ import annotations

from collections.abc import Iterator

from stromboli.embedded.kube_controllers.controller import Controller
from stromboli.embedded.objects.deletion import delete_all
from stromboli.embedded.objects.object_verbs import Objects
from stromboli.embedded.store.records import Change, Key

NAMESPACES = "namespaces"
SERVICE_ACCOUNTS = "serviceaccounts"
CONFIG_MAPS, ROOT_CA = "configmaps", "kube-root-ca.crt"


class NamespaceController(Controller):
    def __init__(self, objects: Objects, ca: str):
        """`ca` is the server's CA bundle, empty if it has none."""
        super().__init__(objects)
        self._ca = ca
        self._terminating: set[str] = set()

    def initial_keys(self) -> Iterator[Key]:
        return (record.key for record in self._objects.store.list(NAMESPACES))

    def keys_for(self, change: Change) -> Iterator[Key]:
        key = change.key
        if key.resource == NAMESPACES:
            yield key
        elif (key.resource == CONFIG_MAPS and key.name == ROOT_CA) or (
            change.after is None and (key.resource == SERVICE_ACCOUNTS or key.namespace in self._terminating)
        ):
            yield Key(NAMESPACES, "", key.namespace)

    async def reconcile(self, key: Key) -> None:
        if key.resource != NAMESPACES or (record := self._objects.store.get(*key)) is None:
            return
        if not record.meta.deletion_timestamp:
            await self._ensure_service_account(key.name)
            await self._ensure_root_ca(key.name)
            return
        self._terminating.add(key.name)
        kinds = {kind.id: kind for kind in self._objects.registry if kind.namespaced}
        if not await delete_all(self._objects, kinds.values(), key.name):
            self._objects.system_update(record, lambda content: content.update(spec={}))
            self._terminating.discard(key.name)

    async def _ensure_service_account(self, namespace: str) -> None:
        if self._objects.store.get(SERVICE_ACCOUNTS, namespace, "default") is None:
            await self._create(SERVICE_ACCOUNTS, namespace, {"metadata": {"name": "default"}})

    async def _ensure_root_ca(self, namespace: str) -> None:
        """Publish the CA bundle, as clients in pods expect it, and restore it after a change or a deletion."""
        data, record = {"ca.crt": self._ca}, self._objects.store.get(CONFIG_MAPS, namespace, ROOT_CA)
        if not self._ca:
            return
        if record is None:
            await self._create(CONFIG_MAPS, namespace, {"metadata": {"name": ROOT_CA}, "data": data})
        else:
            self._objects.system_update(record, lambda content: content.update(data=data))
