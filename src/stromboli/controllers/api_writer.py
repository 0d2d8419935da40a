"""The writes of controllers: only while the lease is held, retried, and only to the object that was read.

Every write may be sent twice: names of created objects are deterministic, patches have the resource version or the uid
as a precondition, deletions the uid.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import msgspec

from stromboli.api.decoding import decode_as
from stromboli.api.errors import BadObject
from stromboli.api.patches import MERGE
from stromboli.api.types.meta import Object
from stromboli.controllers.watched_resources import WATCHED_RESOURCES
from stromboli.kube.api_resources import Resource
from stromboli.kube.request import Api, ApiError, Backoff, GuardedClient, NoResponse, Request, Sleep, is_gone

Kind = TypeVar("Kind", bound=Object)

TIMEOUT = 30.0
ATTEMPTS = 4
FINAL_PAUSE = 3600.0
"""Seconds until a write is tried again that the API server rejected for what it says, unless the object changes."""
REFUSAL_PAUSE = 1.0
"""Seconds until a refused write is tried again, at least: quotas and webhooks do not change their mind at once."""
FOREGROUND, BACKGROUND = "Foreground", "Background"


class ApiWriter:
    """All writes of all controllers."""

    def __init__(
        self,
        api: Api,
        write_time_left: Callable[[], float] = lambda: math.inf,
        backoff: Backoff = Backoff(first=0.1, longest=2.0),  # noqa: B008 - frozen
        sleep: Sleep = asyncio.sleep,
        on_write: Callable[[str, str], None] = lambda verb, resource: None,
    ) -> None:
        """`write_time_left` is as for `GuardedClient`. `on_write` is called with verb and resource of every write
        that succeeded.
        """
        self._api = api
        self._guarded = GuardedClient(api, write_time_left)
        self._backoff = backoff
        self._sleep = sleep
        self._on_write = on_write

    async def create(
        self, kind: type[Object] | Resource, body: Mapping[str, Any], namespace: str = ""
    ) -> bytes | None:
        """Create an object and return it; None if one of that name exists already."""
        resource = kind if isinstance(kind, Resource) else WATCHED_RESOURCES[kind]
        manifest = {"apiVersion": resource.api_version, "kind": resource.kind, **body}
        request = Request("POST", resource.path(namespace), msgspec.json.encode(manifest))
        try:
            answer = await self._write(request)
        except ApiError as error:
            if error.status == 409 and error.reason == "AlreadyExists":
                return None
            raise
        self._on_write("create", resource.plural)
        return answer

    async def patch(
        self,
        obj: Kind,
        patch: Mapping[str, Any],
        subresource: str = "",
        exact: bool = True,
        patch_type: str = MERGE,
    ) -> Kind | None:
        """Apply a patch, a JSON merge patch by default, and return the object as it is then, None if it is gone.

        `exact`: only if the object is unchanged since it was read, else `ApiError` with 409. Without it the uid must
        still be the same.
        """
        resource = WATCHED_RESOURCES[type(obj)]
        meta = obj.metadata
        preconditions = {"uid": meta.uid, **({"resourceVersion": meta.resource_version} if exact else {})}
        body = {**patch, "metadata": {**patch.get("metadata", {}), **preconditions}}
        path = resource.path(meta.namespace, meta.name, subresource)
        try:
            answer = await self._write(Request("PATCH", path, msgspec.json.encode(body), patch_type))
        except ApiError as error:
            if is_gone(error):
                return None
            raise
        self._on_write("patch", resource.plural)
        return decode_response(type(obj), answer)

    async def patch_at(self, resource: Resource, name: str, patch: Mapping[str, Any], namespace: str) -> None:
        """Apply a JSON merge patch to an object of any resource, whoever has changed it since it was read."""
        path = resource.path(namespace, name)
        await self._write(Request("PATCH", path, msgspec.json.encode(patch), MERGE))
        self._on_write("patch", resource.plural)

    async def delete(self, obj: Object, propagation: str = BACKGROUND) -> bool:
        """Delete the object with that uid; False if it was gone."""
        meta = obj.metadata
        resource = WATCHED_RESOURCES[type(obj)]
        return await self.delete_at(resource, meta.name, meta.namespace, meta.uid, propagation)

    async def delete_at(
        self, resource: Resource, name: str, namespace: str, uid: str, propagation: str = BACKGROUND
    ) -> bool:
        """Delete an object by name, with a given uid as precondition; False if it was gone."""
        options: dict[str, Any] = {
            "apiVersion": "v1",
            "kind": "DeleteOptions",
            "propagationPolicy": propagation,
        }
        if uid:
            options["preconditions"] = {"uid": uid}
        request = Request("DELETE", resource.path(namespace, name), msgspec.json.encode(options))
        try:
            await self._write(request)
        except ApiError as error:
            if is_gone(error):
                return False
            raise
        self._on_write("delete", resource.plural)
        return True

    async def read(self, kind: type[Kind], name: str, namespace: str = "") -> Kind | None:
        """An object as the API server has it now; None if it does not exist."""
        answer = await self.read_at(WATCHED_RESOURCES[kind], name, namespace)
        return None if answer is None else decode_response(kind, answer)

    async def read_at(self, resource: Resource, name: str, namespace: str = "") -> bytes | None:
        try:
            return await self._send(self._api, Request("GET", resource.path(namespace, name)))
        except ApiError as error:
            if error.status == 404:
                return None
            raise

    # -- requests

    async def _write(self, request: Request) -> bytes:
        return await self._send(self._guarded, request)

    async def _send(self, api: Api, request: Request) -> bytes:
        failures = 0
        while True:
            try:
                return await api.send(request, TIMEOUT)
            except (ApiError, NoResponse) as error:
                failures += 1
                if failures >= ATTEMPTS or not _is_retryable(error):
                    raise
                retry_after = error.retry_after if isinstance(error, ApiError) else None
                await self._sleep(self._backoff.pause(failures, retry_after))


def _is_retryable(error: ApiError | NoResponse) -> bool:
    """Not a conflict: the write must be decided anew first."""
    if isinstance(error, NoResponse):
        return True
    return error.status in (408, 425, 429) or error.status >= 500


def is_final(error: BaseException) -> bool:
    """Whether the API server would answer the same again: the object is too large, or wrong.

    Webhooks also answer 400, and may change their mind when something else changes.
    """
    return isinstance(error, ApiError) and error.status in (400, 413, 422) and not is_denied(error)


def is_refusal(error: BaseException) -> bool:
    """Whether the API server understood the write and does not want it: a quota, a permission, a webhook."""
    return isinstance(error, ApiError) and error.status in (400, 401, 403, 413, 422)


def is_denied(error: ApiError) -> bool:
    """Whether a webhook refused the write."""
    return "denied the request" in str(error)


def is_namespace_terminating(error: Exception) -> bool:
    """Whether nothing can be created since the namespace is being deleted."""
    return isinstance(error, ApiError) and error.status == 403 and "being terminated" in str(error)


def decode_response(kind: type[Kind], answer: bytes) -> Kind:
    """The object in an answer of the API server."""
    try:
        return decode_as(kind, answer)
    except BadObject as error:
        raise NoResponse(f"the API server's answer is no {kind.__name__}: {error}") from None
