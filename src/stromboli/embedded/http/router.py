"""Routes one HTTP request: authentication, authorization, then the verb on the resource of its URL."""

from __future__ import annotations

import logging
from typing import Any, NamedTuple

import msgspec
from aiohttp import web

from stromboli.api.schemas.schema_problems import unsupported
from stromboli.embedded.admission.write_request import WriteRequest
from stromboli.embedded.api_status import StatusError
from stromboli.embedded.auth.authorization import RequestAuthorizer
from stromboli.embedded.auth.identity import Tokens
from stromboli.embedded.http import list_pages, request_bodies
from stromboli.embedded.http.authentication import Authenticator
from stromboli.embedded.http.discovery import VERSION, discovery_document
from stromboli.embedded.http.json_responses import error_response, json_response, write_response
from stromboli.embedded.http.log_responses import send_log
from stromboli.embedded.http.openapi_documents import ROOT, openapi_document
from stromboli.embedded.http.query_parameters import Query, read_flag, read_number
from stromboli.embedded.http.representations import (
    Representation,
    encode_object,
    negotiate,
)
from stromboli.embedded.http.request_headers import check_headers
from stromboli.embedded.http.request_paths import RequestInfo, parse_request
from stromboli.embedded.http.streamed_responses import list_response
from stromboli.embedded.http.user_shares import USER_SEATS, UserShares, share_of
from stromboli.embedded.http.watch_responses import serve_watch
from stromboli.embedded.kinds.builtin_kinds import REVIEWS
from stromboli.embedded.kinds.kind import Kind
from stromboli.embedded.kinds.status_errors import (
    bad_request,
    invalid_options,
    no_such_resource,
    too_large_version,
)
from stromboli.embedded.nodes.pod_logs import LogSource
from stromboli.embedded.objects import deletion, subresources
from stromboli.embedded.objects.object_verbs import Objects, WriteResult
from stromboli.embedded.patching.patch_request import APPLY
from stromboli.embedded.rbac.policy_rules import User
from stromboli.embedded.store.records import Key, Record
from stromboli.embedded.store.version_log import WriteFailed
from stromboli.embedded.store.watch_hub import WatchHub
from stromboli.embedded.time_slices import LARGE, TimeSlices

log = logging.getLogger(__name__)

JSON = "application/json"
HEALTH = ("/healthz", "/readyz", "/livez")
OBJECTS_PER_SEAT = 1_000
"""Objects of a kind, for each of which a list takes a further seat."""


class _Write(NamedTuple):
    """A request that changes something, with its body."""

    info: RequestInfo
    query: Query
    data: bytes
    media_type: str
    request: WriteRequest

    def body(self) -> Any:
        return request_bodies.decode_body(self.data, self.media_type)


class Router:
    """The handler of all requests."""

    def __init__(
        self,
        objects: Objects,
        hub: WatchHub,
        tokens: Tokens,
        authorizer: RequestAuthorizer,
        logs: LogSource | None = None,
    ):
        self._objects = objects
        self._hub = hub
        self._tokens = tokens
        self._authorizer = authorizer
        self._authenticator = Authenticator(objects.store, tokens, authorizer)
        self._logs = logs
        self._shares = UserShares()

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        """Answer a request; whatever fails becomes a Status."""
        try:
            return await self._answer(request)
        except StatusError as error:
            return error_response(error)
        except web.HTTPRequestEntityTooLarge as error:
            return error_response(StatusError(413, f"the request is too large: {error.text}"))
        except web.RequestPayloadError as error:
            return error_response(bad_request(f"the body cannot be read: {' '.join(str(error).split())}"))
        except WriteFailed as error:
            log.error("not written: %s", error)
            return error_response(StatusError(500, f"Internal error occurred: not written: {error}"))
        except (ConnectionError, TimeoutError):
            raise
        except Exception:
            log.exception("%s %s failed", request.method, request.path[:500])
            return error_response(StatusError(500, "Internal error occurred: see the log of the server"))

    async def _answer(self, request: web.BaseRequest) -> web.StreamResponse:
        check_headers(request)
        path, method = request.rel_url.raw_path, request.method
        if path in HEALTH or path.startswith(tuple(f"{endpoint}/" for endpoint in HEALTH)):
            return web.Response(text="ok")
        if path in ("/version", "/version/"):
            return json_response(msgspec.json.encode(VERSION))
        user = self._authenticator.user(request)
        query = request.rel_url.query
        depth = path.count("/", 1) - path.endswith("/")
        if depth > (1 if path.startswith("/api/") else 2) and not path.startswith(ROOT):
            info = parse_request(path, method, read_flag(query, "watch"), self._objects.registry)
            self._authorizer.check(user, info.attributes)
            if info.verb == "watch" or info.subresource == "log":
                with self._shares.watch(user):
                    return await self._dispatch(request, info, user, query)
            async with self._shares.seats(user, self._width(request, info)):
                return await self._dispatch(request, info, user, query)
        self._authorizer.check_path(user, path, method.lower())
        async with self._shares.seats(user):
            return await self._document(request, path.rstrip("/"))

    def _width(self, request: web.BaseRequest, info: RequestInfo) -> int:
        """How many seats a request takes: more if its body is large, or many objects are read."""
        if info.verb in ("list", "deletecollection"):
            return 1 + len(self._objects.store.table(info.kind.id)) // OBJECTS_PER_SEAT
        if (
            request.content_length is None or "Content-Encoding" in request.headers
        ):  # of unknown size, if there is one
            return USER_SEATS if request.body_exists else 1
        return 1 + request.content_length // LARGE

    async def _document(self, request: web.BaseRequest, path: str) -> web.Response:
        registry, accept = self._objects.registry, request.headers.get("Accept", "")
        if path.startswith(ROOT):
            document = await openapi_document(registry, path, accept)
        else:
            document = discovery_document(registry, path, accept)
        if document is None:
            if path.startswith(("/api/", "/apis/")):
                raise no_such_resource()
            return web.Response(status=404, text="404 page not found\n")
        return web.Response(body=document[0], headers={"Content-Type": document[1]})

    async def _dispatch(
        self, request: web.BaseRequest, info: RequestInfo, user: User, query: Query
    ) -> web.StreamResponse:
        kind, store = info.kind, self._objects.store
        if info.verb == "watch":
            turns = self._shares.turns(user)
            return await serve_watch(request, store, self._hub, kind, info.namespace, user, turns, query)
        representation = negotiate(request.headers.get("Accept", ""), query.get("includeObject", ""))
        if info.verb == "list":
            page = await list_pages.list_page(store, kind, info.namespace, query)
            await store.wait_committed()
            return self._list_response(request, kind, user, page, representation)
        if info.verb == "get":
            return await self._get(request, info, representation, query)
        data = await request_bodies.read_body(request)
        media_type = request.content_type if "Content-Type" in request.headers else JSON
        write_request = _write_request(info, user, query, request)._replace(size=len(data))
        write = _Write(info, query, data, media_type, write_request)
        if kind in REVIEWS:
            return json_response(msgspec.json.encode(self._review(write)), 201)
        if info.verb == "delete":
            return await self._delete(write)
        if info.verb == "deletecollection":
            page = await self._delete_collection(write)
            return self._list_response(request, kind, user, page, representation)
        result = await (self._write_subresource(write) if info.subresource else self._write(write))
        await store.wait_committed()
        return write_response(info, result, representation)

    async def _get(
        self, request: web.BaseRequest, info: RequestInfo, representation: Representation, query: Query
    ) -> web.StreamResponse:
        current = self._objects.store.revision
        if (revision := read_number(query, "resourceVersion") or 0) > current:
            raise too_large_version(revision, current)
        record = self._objects.get(info.kind, info.namespace, info.name)
        if info.subresource == "log":
            return await send_log(request, self._logs, record, query)
        await self._objects.store.wait_committed()
        if info.subresource == "scale":
            return json_response(msgspec.json.encode(subresources.read_scale(info.kind, record)))
        return json_response(encode_object(info.kind, record, representation))

    async def _write(self, write: _Write) -> WriteResult:
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

    async def _apply(self, write: _Write) -> WriteResult:
        """Server-side apply, which creates an object that does not exist."""
        info, objects = write.info, self._objects
        manager = write.query.get("fieldManager", "")[:128]
        request = write.request._replace(server_side_apply=True, manager=manager)
        force = read_flag(write.query, "force")
        change = request_bodies.read_apply(info.kind, write.data, manager, force, info.subresource)
        if objects.store.get(info.kind.id, info.namespace, info.name) is None and not info.subresource:
            self._authorizer.check(request.user, info._replace(verb="create").attributes)
            content = change(None)
            content.setdefault("metadata", {}).setdefault("name", info.name)
            return await objects.create(request, content)
        return await objects.update(request, change)

    def _review(self, write: _Write) -> dict[str, Any]:
        kind, content = write.info.kind, write.body()
        if kind.kind == "TokenReview":
            return self._authenticator.review(content)
        return self._authorizer.review(write.request.user, kind, content, write.info.namespace)

    async def _write_subresource(self, write: _Write) -> WriteResult:
        info, objects = write.info, self._objects
        if info.subresource in ("status", "finalize"):
            return await self._write(write)
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

    async def _write_scale(self, write: _Write) -> WriteResult:
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

    async def _delete(self, write: _Write) -> web.Response:
        data = await deletion.delete(self._objects, *_deletion(write))
        await self._objects.store.wait_committed()
        return json_response(data)

    async def _delete_collection(self, write: _Write) -> list_pages.Page:
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

    def _list_response(
        self, request: web.BaseRequest, kind: Kind, user: User, page: list_pages.Page, form: Representation
    ) -> web.Response:
        owner, turns = share_of(user).owner, self._shares.turns(user)
        return list_response(request, self._hub.buffers, owner, turns, kind, page, form)


def _deletion(write: _Write) -> tuple[WriteRequest, deletion.DeleteOptions]:
    body = write.body() if write.data.strip() else None
    options = deletion.read_options(body, write.query)
    dry_run = write.request.dry_run or bool(options.dry_run)
    return write.request._replace(dry_run=dry_run), options


def _write_request(info: RequestInfo, user: User, query: Query, request: web.BaseRequest) -> WriteRequest:
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
    )
