"""Requests that change something: their bodies are decoded, and objects written as they ask."""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec
from aiohttp import web

from stromboli.api.patches import APPLY
from stromboli.api.schemas.schema_problems import unsupported
from stromboli.embedded.admission.write_request import WriteRequest
from stromboli.embedded.api_status import StatusError
from stromboli.embedded.auth.authorization import RequestAuthorizer
from stromboli.embedded.auth.identity import Tokens
from stromboli.embedded.http import list_pages, request_bodies
from stromboli.embedded.http.query_parameters import Query, read_flag
from stromboli.embedded.http.request_paths import RequestInfo
from stromboli.embedded.kinds.kind import Content
from stromboli.embedded.kinds.status_errors import bad_request, conflict, invalid_options
from stromboli.embedded.objects import deletion, subresources
from stromboli.embedded.objects.object_verbs import Objects, WriteResult
from stromboli.embedded.rbac.policy_rules import User
from stromboli.embedded.store.records import Key, Record
from stromboli.embedded.time_slices import TimeSlices


class Write(NamedTuple):
    """A request that changes something, with its body."""

    info: RequestInfo
    query: Query
    data: bytes
    media_type: str
    request: WriteRequest

    def body(self) -> Any:
        return request_bodies.decode_body(self.data, self.media_type)


class ObjectWriter:
    """Carries out writes, and waits until they are committed."""

    def __init__(self, objects: Objects, tokens: Tokens, authorizer: RequestAuthorizer):
        self._objects = objects
        self._tokens = tokens
        self._authorizer = authorizer

    async def write(self, write: Write) -> WriteResult:
        """Create, update or patch an object or a subresource."""
        result = await (
            self._write_subresource(write) if write.info.subresource else self._write_object(write)
        )
        await self._objects.store.wait_committed()
        return result

    async def _write_object(self, write: Write) -> WriteResult:
        info, objects = write.info, self._objects
        if info.verb == "create":
            return await objects.create(write.request, write.body())
        if write.media_type == APPLY and info.verb == "patch":
            return await self._apply(write)
        if info.verb == "update":
            change = request_bodies.read_replacement(write.data, write.media_type)
        else:
            change = request_bodies.read_object_patch(info.kind, write.data, write.media_type)
        return await objects.update(write.request, change)

    async def _apply(self, write: Write) -> WriteResult:
        """Server-side apply, which creates an object that does not exist."""
        info, objects = write.info, self._objects
        manager = write.query.get("fieldManager", "")[:128]
        request = write.request._replace(server_side_apply=True, manager=manager)
        force = read_flag(write.query, "force")
        change = request_bodies.read_apply(info.kind, write.data, manager, force, info.subresource)
        if objects.store.get(info.kind.id, info.namespace, info.name) is None and not info.subresource:
            self._authorizer.check(request.user, info._replace(verb="create").attributes())
            content = change(None)
            _check_new_identity(info, content["metadata"])
            return await objects.create(request, content)
        return await objects.update(request, change)

    async def _write_subresource(self, write: Write) -> WriteResult:
        info, objects = write.info, self._objects
        if info.subresource in ("status", "finalize"):
            return await self._write_object(write)
        if info.subresource == "scale":
            return await self._write_scale(write)
        content = write.body()
        subresources.check_body(info.kind, info.name, info.subresource, content)
        if info.subresource == "binding":
            data = subresources.bind(objects, write.request, content)
        elif info.subresource == "eviction":
            data = await subresources.evict(objects, write.request, content)
        else:
            account = objects.get(info.kind, info.namespace, info.name)
            data = msgspec.json.encode(subresources.create_token(self._tokens, account, content))
        return WriteResult(data, created=True)

    async def _write_scale(self, write: Write) -> WriteResult:
        """A Scale is replaced or patched; its object takes over the replicas."""
        info, objects = write.info, self._objects
        kind, namespace, name = info.kind, info.namespace, info.name
        if info.verb == "patch":
            patch = request_bodies.read_patch(kind, write.data, write.media_type)
            scale = patch(subresources.read_scale(kind, objects.get(kind, namespace, name)))
        else:
            scale = write.body()
        request = write.request._replace(subresource="")
        result = await objects.update(request, lambda old: subresources.apply_scale(kind, old, scale))
        record = Record(Key(kind.id, namespace, name), 0, result.data)
        return WriteResult(msgspec.json.encode(subresources.read_scale(kind, record)), result.warnings)

    async def delete(self, write: Write) -> bytes:
        data = await deletion.delete(self._objects, *_deletion(write))
        await self._objects.store.wait_committed()
        return data

    async def delete_collection(self, write: Write) -> list_pages.Page:
        """Delete what a list request with the same query would return; that list."""
        info, objects = write.info, self._objects
        request, delete_options = _deletion(write)
        page = await list_pages.list_page(objects.store, info.kind, info.namespace, write.query)
        slices = TimeSlices()
        for record in page.records:
            if slices.due:
                await slices.pause()
            _, namespace, name = record.key
            try:
                target = request._replace(namespace=namespace, name=name)
                await deletion.delete(objects, target, delete_options)
            except StatusError as error:
                if error.code != 404:
                    raise
        await objects.store.wait_committed()
        return page


def _check_new_identity(info: RequestInfo, meta: Content) -> None:
    """A configuration that creates an object names it, and cannot choose its uid."""
    if uid := meta.get("uid"):
        why = f"uid mismatch: the provided object specified uid {str(uid)[:100]}, and no existing object was found"
        raise conflict(info.kind, info.name, why)
    if not meta.get("name"):
        raise bad_request(
            f"the name of the object ({info.name} based on URL) was undeterminable: name must be provided"
        )


def _deletion(write: Write) -> tuple[WriteRequest, deletion.DeleteOptions]:
    body = write.body() if write.data.strip() else None
    options = deletion.read_options(body, write.query)
    dry_run = write.request.dry_run or bool(options.dry_run)
    return write.request._replace(dry_run=dry_run), options


def write_request(
    info: RequestInfo, user: User, query: Query, request: web.BaseRequest, size: int
) -> WriteRequest:
    dry_run = query.get("dryRun", "")
    if dry_run not in ("", "All"):
        raise invalid_options("CreateOptions", unsupported("dryRun", [dry_run[:100]], ("All",)))
    manager = query.get("fieldManager") or request.headers.get("User-Agent", "unknown").partition("/")[0]
    return WriteRequest(
        info.kind,
        info.namespace,
        info.name,
        user,
        info.subresource,
        dry_run=dry_run == "All",
        manager=manager[:128],
        validation=query.get("fieldValidation", "Warn"),
        size=size,
    )
