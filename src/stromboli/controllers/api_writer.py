"""How controllers write: only while we lead, again after lost answers, and only onto the object that was looked at.

Everything written may be written twice: objects are made under names that follow from what they are for, patches name
the version that they change, deletions the uid.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import msgspec

from stromboli.api.decoding import decode_as
from stromboli.api.errors import BadObject
from stromboli.api.types.meta import Object
from stromboli.controllers.watched_kinds import PLACES
from stromboli.kube.api_resources import Resource
from stromboli.kube.rate_limits import Backoff, Sleep
from stromboli.kube.request import MERGE, Api, ApiError, NoResponse, Request, is_gone

Kind = TypeVar("Kind", bound=Object)

TIMEOUT = 30.0
ATTEMPTS = 4
FOREGROUND, BACKGROUND = "Foreground", "Background"


class Deposed(Exception):
    """Another one leads by now, so we write nothing more."""


class Pen:
    """All writes of all controllers."""

    def __init__(
        self,
        api: Api,
        may_write: Callable[[], bool] = lambda: True,
        timeout: float = TIMEOUT,
        backoff: Backoff = Backoff(first=0.1, longest=2.0),  # noqa: B008 - frozen
        sleep: Sleep = asyncio.sleep,
        wrote: Callable[[str, str], None] = lambda verb, resource: None,
    ) -> None:
        """`wrote` hears of every write that was carried out, for the metrics."""
        self._api = api
        self._may_write = may_write
        self._timeout = timeout
        self._backoff = backoff
        self._sleep = sleep
        self._wrote = wrote

    async def create(
        self, where: type[Object] | Resource, body: Mapping[str, Any], namespace: str = ""
    ) -> bytes | None:
        """Make an object: what was made, or None if there is one of that name already (whoever made it)."""
        resource = where if isinstance(where, Resource) else PLACES[where]
        whole = {"apiVersion": resource.api_version, "kind": resource.kind, **body}
        request = Request("POST", resource.path(namespace), msgspec.json.encode(whole))
        try:
            answer = await self._write(request)
        except ApiError as error:
            if error.status == 409 and error.reason == "AlreadyExists":
                return None
            raise
        self._wrote("create", resource.plural)
        return answer

    async def patch(
        self, thing: Kind, patch: Mapping[str, Any], subresource: str = "", exact: bool = True
    ) -> Kind | None:
        """Change an object (JSON merge patch) and return it as it is now, None if it is gone.

        `exact`: only if nobody changed it since it was looked at, else `ApiError` with 409. Otherwise it must at least
        be the same object, not another one of its name.
        """
        resource = PLACES[type(thing)]
        meta = thing.metadata
        held = {"uid": meta.uid, **({"resourceVersion": meta.resource_version} if exact else {})}
        body = {**patch, "metadata": {**patch.get("metadata", {}), **held}}
        path = resource.path(meta.namespace, meta.name, subresource)
        try:
            answer = await self._write(Request("PATCH", path, msgspec.json.encode(body), MERGE))
        except ApiError as error:
            if is_gone(error):
                return None
            raise
        self._wrote("patch", resource.plural)
        return decoded(type(thing), answer)

    async def patch_at(
        self, resource: Resource, name: str, patch: Mapping[str, Any], namespace: str = "", part: str = ""
    ) -> bytes:
        """Change an object that is on no shelf; whoever patches says on what conditions."""
        path = resource.path(namespace, name, part)
        answer = await self._write(Request("PATCH", path, msgspec.json.encode(patch), MERGE))
        self._wrote("patch", resource.plural)
        return answer

    async def delete(self, thing: Object, propagation: str = BACKGROUND) -> bool:
        """Delete that very object; False if it was gone."""
        meta = thing.metadata
        return await self.delete_at(PLACES[type(thing)], meta.name, meta.namespace, meta.uid, propagation)

    async def delete_at(
        self,
        resource: Resource,
        name: str,
        namespace: str = "",
        uid: str = "",
        propagation: str = BACKGROUND,
        grace: float | None = None,
    ) -> bool:
        """Delete an object by name, and by uid if one is given; False if it was gone."""
        options: dict[str, Any] = {
            "apiVersion": "v1",
            "kind": "DeleteOptions",
            "propagationPolicy": propagation,
        }
        if uid:
            options["preconditions"] = {"uid": uid}
        if grace is not None:
            options["gracePeriodSeconds"] = grace
        request = Request("DELETE", resource.path(namespace, name), msgspec.json.encode(options))
        try:
            await self._write(request)
        except ApiError as error:
            if is_gone(error):
                return False
            raise
        self._wrote("delete", resource.plural)
        return True

    async def read(self, kind: type[Kind], name: str, namespace: str = "") -> Kind | None:
        """An object as it is now, straight from the API server; None if there is none."""
        answer = await self.read_at(PLACES[kind], name, namespace)
        return None if answer is None else decoded(kind, answer)

    async def read_at(self, resource: Resource, name: str, namespace: str = "") -> bytes | None:
        try:
            return await self._asked(Request("GET", resource.path(namespace, name)))
        except ApiError as error:
            if error.status == 404:
                return None
            raise

    # -- asking

    async def _write(self, request: Request) -> bytes:
        return await self._asked(request, self._may_write)

    async def _asked(self, request: Request, may: Callable[[], bool] = lambda: True) -> bytes:
        failures = 0
        while True:
            if not may():
                raise Deposed(f"{request.method} {request.path}: not written, another one leads")
            try:
                return await self._api.send(request, self._timeout)
            except (ApiError, NoResponse) as error:
                failures += 1
                if failures >= ATTEMPTS or not _worth_repeating(error):
                    raise
                asked = error.retry_after if isinstance(error, ApiError) else None
                await self._sleep(self._backoff.pause(failures, asked))


def _worth_repeating(error: ApiError | NoResponse) -> bool:
    """A conflict is not: what is to be written has to be thought over first."""
    if isinstance(error, NoResponse):
        return True
    return error.status in (408, 425, 429) or error.status >= 500


def decoded(kind: type[Kind], answer: bytes) -> Kind:
    """What the API server said, as far as it is read."""
    try:
        thing = decode_as(kind, answer)
    except BadObject as error:
        raise NoResponse(f"the API server's answer is no {kind.__name__}: {error}") from None
    assert isinstance(thing, kind)
    return thing
