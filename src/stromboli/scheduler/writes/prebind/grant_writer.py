"""What a writer of one class of grants does, and how it reads, changes and awaits objects."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, Protocol, TypeVar

import msgspec

from stromboli.api.decoding import decode_as
from stromboli.api.patches import JSON_PATCH, MERGE
from stromboli.api.types.meta import Object
from stromboli.engine.decisions import Bind
from stromboli.kube.api_resources import RESOURCES
from stromboli.kube.request import ApiError, GuardedClient, Request, is_gone
from stromboli.scheduler.writes.decision_requests import deletion
from stromboli.scheduler.writes.write_orders import GangMember

Json = dict[str, Any]
Kind = TypeVar("Kind", bound=Object)
LOOK_AGAIN = 30.0
"""Seconds after which a bind looks again at what it waits for, should the watch have missed it."""


class GrantWriter(Protocol):
    """Writes the grants of one class. All of it may be called again after an error, and then goes on."""

    doing: str
    """The beginning of its errors."""

    async def write(self, member: GangMember, bind: Bind, grant: Any) -> None:
        """Write a grant, unless it is written; first note in `take_back` of the member how it is undone.

        A conflict is raised as it is: after a pause all is read again.
        """

    async def time_to_wait(self, member: GangMember, bind: Bind, grant: Any) -> float:
        """Zero if nothing more has to come; else the seconds after which to look again, unless a watch shows it.

        Raises `PreBindFailed` if it will not come, or did not come in time.
        """


class GrantObjects:
    """Reads objects, and changes them only if they are still as they were read."""

    def __init__(self, client: GuardedClient):
        self._client = client

    async def read(self, kind: type[Object], namespace: str, name: str) -> Json | None:
        """An object as the API server has it now; None if there is none."""
        body = await self._read(kind, namespace, name)
        return msgspec.json.decode(body, type=dict[str, Any]) if body is not None else None

    async def decoded(self, kind: type[Kind], namespace: str, name: str) -> Kind | None:
        """The same with the fields that we know, for an object that is not to be changed."""
        body = await self._read(kind, namespace, name)
        return decode_as(kind, body) if body is not None else None

    async def _read(self, kind: type[Object], namespace: str, name: str) -> bytes | None:
        try:
            return await self._client.send(Request("GET", RESOURCES[kind].path(namespace, name)))
        except ApiError as error:
            if error.status == 404:
                return None
            raise

    async def patch(self, kind: type[Object], object: Json, changes: Json) -> Json:
        """Change an object, which must not have changed since it was read, with a merge patch; the new object."""
        metadata = object["metadata"]
        version = {"uid": metadata["uid"], "resourceVersion": metadata["resourceVersion"]}
        body = {**changes, "metadata": {**changes.get("metadata", {}), **version}}
        answer = await self._client.send(
            Request("PATCH", _path(kind, object), msgspec.json.encode(body), MERGE)
        )
        return msgspec.json.decode(answer, type=dict[str, Any])

    async def set_status(self, kind: type[Object], object: Json, status: Json) -> Json:
        """Replace the status of an object, which must not have changed since it was read; the new object.

        A merge patch would drop each null in it, and parameters for drivers may have some.
        """
        metadata = object["metadata"]
        operations = [
            {"op": "replace", "path": f"/metadata/{field}", "value": metadata[field]}
            for field in ("uid", "resourceVersion")
        ]
        operations.append({"op": "add", "path": "/status", "value": status})
        path = _path(kind, object, "status")
        answer = await self._client.send(Request("PATCH", path, msgspec.json.encode(operations), JSON_PATCH))
        return msgspec.json.decode(answer, type=dict[str, Any])

    async def delete(self, kind: type[Object], object: Json) -> None:
        """Delete an object, unless it is gone or another has its name."""
        try:
            await self._client.send(deletion(_path(kind, object), uid_of(object)))
        except ApiError as error:
            if not is_gone(error):
                raise


def _path(kind: type[Object], object: Json, subresource: str = "") -> str:
    metadata = object["metadata"]
    return RESOURCES[kind].path(metadata.get("namespace", ""), metadata["name"], subresource)


def annotations_of(object: Json) -> dict[str, str]:
    return object["metadata"].get("annotations") or {}


def uid_of(object: Json) -> str:
    return str(object["metadata"].get("uid", ""))


# -- objects that binds wait for


ObjectId = tuple[type[Object], str]
"""Kind and `namespace/name`."""
IsOfInterest = Callable[[Any, bool], bool]
"""Is given an object, and whether it is gone."""


class AwaitedObjects:
    """Which bind waits for which object; on the event loop.

    When a watch shows a change to one of them, the bind is resumed and reads the object. So nothing is polled, and
    no decision depends on a watch that lags behind our own writes.
    """

    def __init__(self, resume: Callable[[Hashable], None]):
        """`resume` is called with the key of an order."""
        self._resume = resume
        self._waiting: dict[ObjectId, dict[Hashable, IsOfInterest]] = {}
        self._awaited: dict[Hashable, set[ObjectId]] = {}

    def __len__(self) -> int:
        """How many orders wait."""
        return len(self._awaited)

    def expect(
        self, order: Hashable, kind: type[Object], key: str, is_of_interest: IsOfInterest = lambda *_: True
    ) -> None:
        """Resume an order when a change to an object, or that it is gone, is of interest."""
        self._waiting.setdefault((kind, key), {})[order] = is_of_interest
        self._awaited.setdefault(order, set()).add((kind, key))

    def forget(self, order: Hashable) -> None:
        """The order waits no longer."""
        for id in self._awaited.pop(order, ()):
            waiting = self._waiting[id]
            del waiting[order]
            if not waiting:
                del self._waiting[id]

    def note(self, object: Object, gone: bool) -> None:
        """A watch shows a change."""
        waiting = self._waiting.get((type(object), object.key)) if self._waiting else None
        for order, is_of_interest in list(waiting.items()) if waiting else ():
            if is_of_interest(object, gone):
                self._resume(order)

    def resume_all(self) -> None:
        for order in list(self._awaited):
            self._resume(order)
