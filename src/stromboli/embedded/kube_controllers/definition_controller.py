"""CustomResourceDefinitions: their kinds are registered when they are committed, and go after their last object."""

from __future__ import annotations

from collections.abc import Iterator

from stromboli.embedded.kinds.builtin.custom_resource_definition import CRD_FINALIZER, DEFINITIONS
from stromboli.embedded.kinds.object_metadata import remove_finalizer
from stromboli.embedded.kube_controllers.controller import ServerContext, StoreController
from stromboli.embedded.objects.deletion import delete_all
from stromboli.embedded.store.records import Change, Key


class DefinitionController(StoreController):
    name = "customresourcedefinition-controller"

    def __init__(self, context: ServerContext) -> None:
        super().__init__(context)
        self._terminating: set[str] = set()
        """Ids of kinds whose definition is deleted once they have no objects."""

    def initial_keys(self) -> Iterator[Key]:
        return (record.key for record in self._objects.store.list(DEFINITIONS))

    def keys_for(self, change: Change) -> Iterator[Key]:
        if change.key.resource == DEFINITIONS:
            self._register(change)
            yield change.key
        elif change.after is None and change.key.resource in self._terminating:
            yield Key(DEFINITIONS, "", change.key.resource)

    def _register(self, change: Change) -> None:
        """At once: requests that come after the commit must find the new versions."""
        registry = self._objects.registry
        if change.before is not None:
            registry.unregister(change.key.name)
        if change.after is not None:
            registry.register_definition(change.after.object())
            if change.before is not None:
                self._migrate(change.key.name)

    async def reconcile(self, key: Key) -> None:
        if key.resource != DEFINITIONS or (record := self._objects.store.get(*key)) is None:
            return
        self._migrate(key.name)
        if not record.meta.deletion_timestamp:
            return
        self._terminating.add(key.name)
        kind = self._objects.registry.by_id(key.name)
        if kind is not None:
            remainder = await delete_all(self._objects, [kind])
            if remainder.failure is not None:
                raise remainder.failure
            if remainder.records:
                return
        self._objects.system_update(record, lambda content: remove_finalizer(content, CRD_FINALIZER))
        self._terminating.discard(key.name)

    def _migrate(self, resource: str) -> None:
        """Write all objects in the storage version; they were all stored in one version before, too."""
        kind = self._objects.registry.by_id(resource)
        if kind is None:
            return
        version = kind.storage_version or kind.api_version
        for record in list(self._objects.store.list(resource)):
            if record.field("apiVersion") == version:
                return
            self._objects.system_update(record, lambda content: content.update(apiVersion=version))
