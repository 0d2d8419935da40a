"""Routes one HTTP request: authentication, authorization, then the verb on the resource of its URL."""

from __future__ import annotations

import logging
from typing import Any

import msgspec
from aiohttp import web

from stromboli.api.errors import error_text
from stromboli.embedded.api_status import StatusError
from stromboli.embedded.auth.authorization import RequestAuthorizer
from stromboli.embedded.auth.identity import Tokens
from stromboli.embedded.http import list_pages, request_bodies
from stromboli.embedded.http.authentication import Authenticator
from stromboli.embedded.http.discovery import VERSION, discovery_document
from stromboli.embedded.http.explain_responses import ClusterExplanations
from stromboli.embedded.http.json_responses import error_response, json_response, write_response
from stromboli.embedded.http.log_responses import send_log
from stromboli.embedded.http.metrics_responses import PATH, ClusterMetrics
from stromboli.embedded.http.object_writer import ObjectWriter, Write, write_request
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
from stromboli.embedded.http.streams.stream_requests import STREAMS, StreamRequest
from stromboli.embedded.http.usage_responses import UsageResponses
from stromboli.embedded.http.user_shares import USER_SEATS, UserShares, share_of
from stromboli.embedded.http.watch_responses import serve_watch
from stromboli.embedded.kinds.builtin_kinds import METRICS, REVIEWS
from stromboli.embedded.kinds.kind import Kind
from stromboli.embedded.kinds.status_errors import (
    bad_request,
    no_such_resource,
    too_large_version,
)
from stromboli.embedded.nodes.pod_logs import LogSource
from stromboli.embedded.nodes.pod_streams import PodStreams
from stromboli.embedded.nodes.usage.cluster_usage import UsageSource
from stromboli.embedded.objects import subresources
from stromboli.embedded.objects.object_verbs import Objects
from stromboli.embedded.rbac.policy_rules import User
from stromboli.embedded.store.version_log import DiskFull, WriteFailed
from stromboli.embedded.store.watch_hub import WatchHub
from stromboli.embedded.time_slices import LARGE
from stromboli.scheduler.explain.explain_paths import PREFIX

log = logging.getLogger(__name__)

JSON = "application/json"
HEALTH = ("/healthz", "/readyz", "/livez")
OBJECTS_PER_SEAT = 1_000
"""Objects of a kind, for each of which a list takes a further seat."""


class Router:
    """The handler of all requests."""

    def __init__(
        self,
        objects: Objects,
        hub: WatchHub,
        tokens: Tokens,
        authorizer: RequestAuthorizer,
        logs: LogSource | None = None,
        usage: UsageSource | None = None,
        streams: PodStreams | None = None,
        explanations: ClusterExplanations | None = None,
        metrics: ClusterMetrics | None = None,
    ):
        self._objects = objects
        self._hub = hub
        self._writer = ObjectWriter(objects, tokens, authorizer)
        self._authorizer = authorizer
        self._authenticator = Authenticator(objects.store, tokens, authorizer)
        self._logs = logs
        self._usage = None if usage is None else UsageResponses(objects, usage)
        self._streams = streams or PodStreams()
        self._explanations = explanations
        self._metrics = metrics
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
            code = 507 if isinstance(error, DiskFull) else 500
            return error_response(StatusError(code, f"Internal error occurred: not written: {error}"))
        except (ConnectionError, TimeoutError):
            raise
        except Exception as error:
            log.exception("%s %s failed: %s", request.method, request.path[:500], error_text(error)[:500])
            return error_response(StatusError(500, "Internal error occurred: see the log of the server"))

    async def _answer(self, request: web.BaseRequest) -> web.StreamResponse:
        check_headers(request)
        path, method = request.rel_url.raw_path, request.method
        if path in HEALTH or path.startswith(tuple(f"{endpoint}/" for endpoint in HEALTH)):
            if path.startswith("/readyz") and self._objects.store.disk_full:
                return web.Response(status=503, text="the disk is full: nothing can be written")
            return web.Response(text="ok")
        if path in ("/version", "/version/"):
            return json_response(msgspec.json.encode(VERSION))
        user = self._authenticator.user(request)
        query = request.rel_url.query
        if self._explanations is not None and path.startswith(PREFIX) and method == "GET":
            async with self._shares.seats(user):
                return await self._explanations.respond(path, query, user, self._authorizer)
        depth = path.count("/", 1) - path.endswith("/")
        if depth > (1 if path.startswith("/api/") else 2) and not path.startswith(ROOT):
            info = parse_request(path, method, read_flag(query, "watch"), self._objects.registry)
            self._authorizer.check(user, info.attributes(query.get("fieldSelector", "")))
            if info.subresource in STREAMS:
                return await self._stream(request, info, user, query)
            if info.verb == "watch" or info.subresource == "log":
                with self._shares.watch(user):
                    return await self._dispatch(request, info, user, query)
            async with self._shares.seats(user, self._width(request, info)):
                return await self._dispatch(request, info, user, query)
        self._authorizer.check_path(user, path, method.lower())
        async with self._shares.seats(user):
            if self._metrics is not None and path == PATH and method == "GET":
                return await self._metrics.respond()
            return await self._document(request, path.rstrip("/"))

    async def _stream(
        self, request: web.BaseRequest, info: RequestInfo, user: User, query: Query
    ) -> web.StreamResponse:
        """A stream changes what runs, so that the right to read does not suffice, whatever the method is."""
        self._authorizer.check(user, info._replace(verb="create").attributes())
        with self._shares.stream(user):
            record = self._objects.get(info.kind, info.namespace, info.name)
            return await StreamRequest(request, self._streams, record, info.subresource, query).serve()

    def _width(self, request: web.BaseRequest, info: RequestInfo) -> int:
        """How many seats a request takes: more if its body is large, or many objects are read."""
        if info.verb in ("list", "deletecollection"):
            kind = info.kind
            if kind in METRICS and self._usage is not None:
                kind = self._usage.stored_kind(kind)
            return 1 + len(self._objects.store.table(kind.id)) // OBJECTS_PER_SEAT
        if request.content_length is None or "Content-Encoding" in request.headers:
            return USER_SEATS if request.body_exists else 1  # a body of unknown size
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
            if kind in METRICS and self._usage is not None:
                page = await self._usage.page(kind, info.namespace, query)
            else:
                page = await list_pages.list_page(store, kind, info.namespace, query)
            await store.wait_committed()
            return self._list_response(request, kind, user, page, representation)
        if info.verb == "get":
            return await self._get(request, info, representation, query)
        data = await request_bodies.read_body(request)
        media_type = request.content_type if "Content-Type" in request.headers else JSON
        write = Write(info, query, data, media_type, write_request(info, user, query, request, len(data)))
        if kind in REVIEWS:
            return json_response(msgspec.json.encode(self._review(write)), 201)
        if info.verb == "delete":
            return json_response(await self._writer.delete(write))
        if info.verb == "deletecollection":
            page = await self._writer.delete_collection(write)
            return self._list_response(request, kind, user, page, representation)
        result = await self._writer.write(write)
        return write_response(info, result, representation)

    async def _get(
        self, request: web.BaseRequest, info: RequestInfo, representation: Representation, query: Query
    ) -> web.StreamResponse:
        if info.kind in METRICS and self._usage is not None:
            metrics = await self._usage.get(info.kind, info.namespace, info.name)
            return json_response(encode_object(info.kind, metrics, representation))
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

    def _review(self, write: Write) -> dict[str, Any]:
        kind, content = write.info.kind, write.body()
        if kind.kind == "TokenReview":
            return self._authenticator.review(content)
        return self._authorizer.review(write.request.user, kind, content, write.info.namespace)

    def _list_response(
        self, request: web.BaseRequest, kind: Kind, user: User, page: list_pages.Page, form: Representation
    ) -> web.Response:
        owner, turns = share_of(user).owner, self._shares.turns(user)
        return list_response(request, self._hub.buffers, owner, turns, kind, page, form)
