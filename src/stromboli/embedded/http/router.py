"""One HTTP request, from who asks to the answer."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

import msgspec
from aiohttp import web

from stromboli.embedded.auth.authorization import Access
from stromboli.embedded.auth.identity import Tokens
from stromboli.embedded.http import list_pages, request_bodies
from stromboli.embedded.http.authentication import Authentication
from stromboli.embedded.http.discovery import VERSION, Discovery
from stromboli.embedded.http.log_responses import send_log
from stromboli.embedded.http.openapi_documents import ROOT, Documents
from stromboli.embedded.http.representations import WHOLE, Form, accepted, listed, shown
from stromboli.embedded.http.request_paths import Target, target
from stromboli.embedded.http.watch_responses import stream
from stromboli.embedded.kinds.builtin_kinds import REVIEWS
from stromboli.embedded.kinds.status_errors import Refusal, cause, invalid_options, no_such_resource
from stromboli.embedded.nodes.pod_logs import LogSource
from stromboli.embedded.objects import deletion, subresources
from stromboli.embedded.objects.object_verbs import Objects, Options, Outcome
from stromboli.embedded.patching.patch_request import APPLY
from stromboli.embedded.rbac import User
from stromboli.embedded.store.object_store import WriteFailed
from stromboli.embedded.store.records import Key, Record
from stromboli.embedded.store.watch_hub import Hub

log = logging.getLogger(__name__)

JSON = "application/json"
HEALTH = ("/healthz", "/readyz", "/livez")
_TRUE = ("true", "1", "t", "True")


class Handling:
    """Everything an answer is made from."""

    def __init__(
        self, objects: Objects, hub: Hub, tokens: Tokens, access: Access, logs: LogSource | None = None
    ):
        self.objects = objects
        self.hub = hub
        self.tokens = tokens
        self.access = access
        self.authentication = Authentication(objects.store, tokens, access)
        self.discovery = Discovery(objects.registry)
        self.documents = Documents(objects.registry)
        self._logs = logs

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        """The answer, whatever happens."""
        try:
            return await self._answer(request)
        except Refusal as refusal:
            return refused(refusal)
        except web.HTTPRequestEntityTooLarge as error:
            return refused(Refusal(413, f"the request is too large: {error.text}"))
        except WriteFailed as error:
            log.error("not written: %s", error)
            return refused(Refusal(500, f"Internal error occurred: not written: {error}"))
        except (ConnectionError, TimeoutError):
            raise
        except Exception:
            log.exception("%s %s failed", request.method, request.path[:500])
            return refused(Refusal(500, "Internal error occurred: see the log of the server"))

    async def _answer(self, request: web.BaseRequest) -> web.StreamResponse:
        path, method = request.rel_url.raw_path, request.method
        if path in HEALTH or path.startswith(tuple(f"{one}/" for one in HEALTH)):
            return web.Response(text="ok")
        if path == "/version":
            return answer(msgspec.json.encode(VERSION))
        user = self.authentication.user(request)
        query = request.rel_url.query
        depth = path.count("/", 1) - path.endswith("/")
        if depth > (1 if path.startswith("/api/") else 2) and not path.startswith(ROOT):
            watching = query.get("watch", "") in _TRUE
            about = target(path, method, watching, self.objects.registry)
            self.access.check(user, about.attributes)
            return await self._do(request, about, user, query)
        self.access.check_path(user, path, method.lower())
        return self._document(request, path.rstrip("/"))

    def _document(self, request: web.BaseRequest, path: str) -> web.Response:
        source = self.documents if path.startswith(ROOT) else self.discovery
        found = source.document(path, request.headers.get("Accept", ""))
        if found is None:
            if path.startswith(("/api/", "/apis/")):
                raise no_such_resource()
            return web.Response(status=404, text="404 page not found\n")
        return web.Response(body=found[0], headers={"Content-Type": found[1]})

    async def _do(
        self, request: web.BaseRequest, about: Target, user: User, query: Mapping[str, str]
    ) -> web.StreamResponse:
        kind, store = about.kind, self.objects.store
        if about.verb == "watch":
            return await stream(request, store, self.hub, kind, about.namespace, query)
        form = accepted(request.headers.get("Accept", ""), query.get("includeObject", ""))
        if about.verb == "list":
            found = list_pages.page(store, kind, about.namespace, query)
            await store.settled()
            return answer(listed(kind, found, form))
        if about.verb == "get":
            return await self._get(request, about, form, query)
        data = await request.read()
        options = _options(user, query, request)
        if kind in REVIEWS:
            return answer(msgspec.json.encode(self._review(about, data, user, request)), 201)
        if about.verb in ("delete", "deletecollection"):
            body = request_bodies.body(data, _media(request)) if data.strip() else None
            return await self._delete(about, body, options, query)
        if about.part:
            outcome = await self._part(about, data, options, request, query)
        else:
            outcome = await self._write(about, data, options, request, query)
        await store.settled()
        return written(about, outcome, form)

    async def _get(
        self, request: web.BaseRequest, about: Target, form: Form, query: Mapping[str, str]
    ) -> web.StreamResponse:
        record = self.objects.get(about.kind, about.namespace, about.name)
        if about.part == "log":
            return await send_log(request, self._logs, record, query)
        await self.objects.store.settled()
        if about.part == "scale":
            return answer(msgspec.json.encode(subresources.scale(about.kind, record)))
        return answer(shown(about.kind, record, form))

    async def _write(
        self,
        about: Target,
        data: bytes,
        options: Options,
        request: web.BaseRequest,
        query: Mapping[str, str],
    ) -> Outcome:
        kind, objects = about.kind, self.objects
        content_type = _media(request)
        if about.verb == "create":
            content = request_bodies.body(data, content_type)
            return await objects.create(kind, about.namespace, content, options)
        if about.verb == "update":
            content = request_bodies.body(data, content_type)
            return await objects.update(
                kind, about.namespace, about.name, lambda _: _copy(content), options, about.part
            )
        if content_type == APPLY:
            return await self._apply(about, data, options, query)
        change = request_bodies.change(kind, data, content_type)
        return await objects.update(kind, about.namespace, about.name, change, options, about.part)

    async def _apply(self, about: Target, data: bytes, options: Options, query: Mapping[str, str]) -> Outcome:
        """Server-side apply: what is not there is made."""
        kind, objects, place = about.kind, self.objects, (about.namespace, about.name)
        options = options._replace(applied=True, manager=query.get("fieldManager", "")[:128])
        force = query.get("force", "") in _TRUE
        change = request_bodies.applied(kind, data, options.manager, force, about.part)
        if objects.store.get(kind.id, *place) is None and not about.part:
            self.access.check(options.user, about._replace(verb="create").attributes)
            content = change(None)
            content.setdefault("metadata", {}).setdefault("name", about.name)
            return await objects.create(kind, about.namespace, content, options)
        return await objects.update(kind, *place, change, options, about.part)

    def _review(self, about: Target, data: bytes, user: User, request: web.BaseRequest) -> dict[str, Any]:
        """A question that is answered and not stored."""
        content = request_bodies.body(data, _media(request))
        if about.kind.kind == "TokenReview":
            return self.authentication.review(content)
        return self.access.review(user, about.kind, content, about.namespace)

    async def _part(
        self,
        about: Target,
        data: bytes,
        options: Options,
        request: web.BaseRequest,
        query: Mapping[str, str],
    ) -> Outcome:
        kind, objects, place = about.kind, self.objects, (about.namespace, about.name)
        if about.part in ("status", "finalize"):
            return await self._write(about, data, options, request, query)
        if about.part == "scale":
            return await self._rescale(about, data, options, request)
        content = request_bodies.body(data, _media(request))
        subresources.check(kind, about.part, about.name, content)
        if about.part == "binding":
            return Outcome(subresources.bind(objects, kind, *place, content, options), created=True)
        if about.part == "eviction":
            return Outcome(await subresources.evict(objects, kind, *place, content, options), created=True)
        made = subresources.token(self.tokens, objects.get(kind, *place), content)
        return Outcome(msgspec.json.encode(made), created=True)

    async def _rescale(
        self, about: Target, data: bytes, options: Options, request: web.BaseRequest
    ) -> Outcome:
        """A Scale is put, or patched, in the place of its object."""
        kind, objects, place = about.kind, self.objects, (about.namespace, about.name)
        if about.verb == "patch":
            scaled = request_bodies.change(kind, data, _media(request))(
                subresources.scale(kind, objects.get(kind, *place))
            )
        else:
            scaled = request_bodies.body(data, _media(request))
        made = await objects.update(
            kind, *place, lambda old: subresources.rescaled(kind, old, scaled), options
        )
        record = Record(Key(kind.id, *place), 0, made.data)
        return Outcome(msgspec.json.encode(subresources.scale(kind, record)), made.warnings)

    async def _delete(
        self, about: Target, body: Any, options: Options, query: Mapping[str, str]
    ) -> web.Response:
        kind, store = about.kind, self.objects.store
        asked = deletion.read_options(body, query)
        options = options._replace(dry_run=options.dry_run or bool(asked.dry_run))
        if about.verb == "delete":
            content = await deletion.delete(self.objects, kind, about.namespace, about.name, asked, options)
            await store.settled()
            return answer(content)
        found = list_pages.page(store, kind, about.namespace, query)
        for record in found.records:
            try:
                await deletion.delete(
                    self.objects, kind, record.key.namespace, record.key.name, asked, options
                )
            except Refusal as refusal:
                if refusal.code != 404:
                    raise
        await store.settled()
        return answer(list_pages.encoded(kind, found))


def _media(request: web.BaseRequest) -> str:
    """Who does not say what they send, sends JSON."""
    return request.content_type if "Content-Type" in request.headers else JSON


def _copy(content: Any) -> Any:
    return msgspec.json.decode(msgspec.json.encode(content))


def _options(user: User, query: Mapping[str, str], request: web.BaseRequest) -> Options:
    dry = query.get("dryRun", "")
    if dry not in ("", "All"):
        message = f'Unsupported value: ["{dry[:100]}"]: supported values: "All"'
        raise invalid_options("CreateOptions", cause("dryRun", message, "FieldValueNotSupported"))
    manager = query.get("fieldManager") or request.headers.get("User-Agent", "unknown").partition("/")[0]
    return Options(user, dry == "All", manager[:128], query.get("fieldValidation", "Warn"))


def written(about: Target, outcome: Outcome, form: Form) -> web.Response:
    data = outcome.data
    if form != WHOLE and not about.part:
        data = shown(about.kind, Record(Key(about.kind.id, "", ""), 0, data), form)
    response = answer(data, 201 if outcome.created else 200)
    for warning in outcome.warnings[:50]:
        text = warning[:500].replace("\\", "\\\\").replace('"', '\\"')
        response.headers.add("Warning", f'299 - "{text}"')
    return response


def answer(data: bytes, status: int = 200) -> web.Response:
    return web.Response(body=data, status=status, content_type=JSON)


def refused(refusal: Refusal) -> web.Response:
    response = answer(msgspec.json.encode(refusal.status()), refusal.code)
    if refusal.retry_after:
        response.headers["Retry-After"] = str(refusal.retry_after)
    return response
