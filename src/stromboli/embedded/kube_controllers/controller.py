"""What the controllers have in common: a work queue of their own, keys and writes."""

from __future__ import annotations

from collections.abc import Iterable

from stromboli.api import names
from stromboli.controllers.workqueue import WorkQueue
from stromboli.embedded.admission.write_request import WriteRequest
from stromboli.embedded.auth.identity import APISERVER_USER
from stromboli.embedded.kinds.kind import Content, Kind
from stromboli.embedded.kube_controllers.controller_events import record_event
from stromboli.embedded.objects.deletion import DeleteOptions, Preconditions, delete
from stromboli.embedded.objects.object_verbs import Objects
from stromboli.embedded.store.records import Change, Key, Record


class Controller:
    """Names the objects that a change concerns, and reconciles them."""

    component = "stromboli"
    """Who writes, in events and owners of fields."""
    workers = 1
    """How many objects are reconciled at the same time."""

    def __init__(self, objects: Objects):
        self._objects = objects
        self.queue: WorkQueue[Key] = WorkQueue()

    def initial_keys(self) -> Iterable[Key]:
        """Objects to reconcile at the start, which may have been left half done."""
        return ()

    def keys_for(self, change: Change) -> Iterable[Key]:
        """Objects to reconcile because of a committed change."""
        raise NotImplementedError

    async def reconcile(self, key: Key) -> None:
        raise NotImplementedError

    # -- writes

    async def _create(self, resource: str, namespace: str, content: Content) -> None:
        request = WriteRequest(self._kind(resource), namespace, "", APISERVER_USER, manager=self.component)
        await self._objects.create(request, content)

    async def _delete(self, record: Record) -> None:
        """Delete this object, and not another of its name."""
        resource, namespace, name = record.key
        request = WriteRequest(self._kind(resource), namespace, name, APISERVER_USER, manager=self.component)
        await delete(self._objects, request, DeleteOptions(preconditions=Preconditions(uid=record.meta.uid)))

    async def _tell(self, content: Content, reason: str, message: str, type: str = names.WARNING) -> None:
        await record_event(self._objects, content, reason, message, self.component, type)

    def _kind(self, resource: str) -> Kind:
        kind = self._objects.registry.by_id(resource)
        assert kind is not None, resource
        return kind
