"""The base of the API server's own controllers: they follow the commits of the store and write without a connection."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar
from urllib.parse import unquote

import msgspec

from stromboli.api import names
from stromboli.controllers.reconciler import Reconciler
from stromboli.controllers.recorder import Recorder
from stromboli.controllers.user_event import UserEvent
from stromboli.embedded.admission.write_request import WriteRequest
from stromboli.embedded.api_status import StatusError
from stromboli.embedded.auth.identity import APISERVER_USER
from stromboli.embedded.kinds.kind import Content, Kind
from stromboli.embedded.objects.deletion import DeleteOptions, Preconditions, delete
from stromboli.embedded.objects.object_verbs import Objects
from stromboli.embedded.store.records import Change, Key, Record
from stromboli.embedded.store.version_log import WriteFailed
from stromboli.embedded.time_slices import TimeSlices
from stromboli.kube.event_recorder import ObjectReference
from stromboli.kube.request import ApiError, Request


@dataclass(frozen=True, slots=True)
class ServerContext:
    """What every controller is given."""

    objects: Objects
    recorder: Recorder
    data: Path
    """The server's data folder."""
    ca: str = ""
    """The server's CA bundle, empty if it has none."""
    slices: TimeSlices = field(default_factory=TimeSlices)
    """Shared by all workers, so that many busy ones hold up requests no longer than one, and share commits."""


@contextmanager
def client_errors() -> Iterator[None]:
    """Raise errors of the server as a client would get them, and a failed commit as a conflict: decide anew."""
    try:
        yield
    except StatusError as error:
        raise ApiError(error.code, error.reason, error.message, error.retry_after or None) from error
    except WriteFailed as error:
        raise ApiError(409, "Conflict", str(error)) from error


async def write_event(objects: Objects, request: Request) -> None:
    """Carry out a request of an event recorder without a connection."""
    kind, body = objects.registry.by_kind("v1", "Event"), msgspec.json.decode(request.body or b"")
    assert kind is not None
    namespace, _, *name = request.path.split("/")[4:]
    with client_errors():
        if request.method == "POST":
            manager = body["source"]["component"]
            await objects.create(WriteRequest(kind, namespace, "", APISERVER_USER, manager=manager), body)
            return
        record = objects.store.get(kind.id, namespace, unquote(*name))
        if record is None:
            raise ApiError(404, "NotFound")
        objects.system_update(record, lambda content: content.update(body))


class StoreController(Reconciler[Key]):
    """Names the objects that a commit concerns, and reconciles them."""

    component: ClassVar[str] = "stromboli"
    """The source of events and the manager of fields."""
    workers = 4
    patience = 0.05
    max_pause = final_pause = 60.0

    def __init__(self, context: ServerContext) -> None:
        super().__init__()
        self._objects = context.objects
        self._recorder = context.recorder.of_component(self.component)
        self._time_slices = context.slices

    def initial_keys(self) -> Iterable[Key]:
        """Objects to reconcile at the start, which may have been left half done."""
        return ()

    @abstractmethod
    def keys_for(self, change: Change) -> Iterable[Key]:
        """Objects to reconcile because of a committed change."""

    async def sync(self, key: Key) -> float | None:
        try:
            with client_errors():
                await self.reconcile(key)
        except ApiError as error:
            if error.status != 404:
                raise
        return None

    async def let_others_run(self) -> None:
        if self._time_slices.due:
            await self._time_slices.pause()

    @abstractmethod
    async def reconcile(self, key: Key) -> None:
        """Reconcile one object, as `sync`. A 404 means that an object was deleted and does not count as a failure."""

    # -- writes

    async def _create(self, resource: str, namespace: str, content: Content) -> None:
        request = WriteRequest(self._kind(resource), namespace, "", APISERVER_USER, manager=self.component)
        await self._objects.create(request, content)

    async def _delete(self, record: Record, policy: str = "") -> None:
        """Delete this object, and not another of its name."""
        resource, namespace, name = record.key
        kind = self._objects.registry.by_id(resource)
        if kind is None:  # it is no longer served
            return
        request = WriteRequest(kind, namespace, name, APISERVER_USER, manager=self.component)
        options = DeleteOptions(propagation_policy=policy, preconditions=Preconditions(uid=record.meta.uid))
        await delete(self._objects, request, options)

    def _record_event(self, regarding: Content, reason: str, message: str, type: str = names.WARNING) -> None:
        meta = regarding["metadata"]
        subject = ObjectReference(
            regarding["kind"], meta.get("namespace", ""), meta["name"], meta["uid"], regarding["apiVersion"]
        )
        self._recorder.record_at(subject, UserEvent(type, reason, message))

    def _kind(self, resource: str) -> Kind:
        kind = self._objects.registry.by_id(resource)
        assert kind is not None, resource
        return kind
