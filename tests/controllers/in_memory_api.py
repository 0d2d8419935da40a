"""An API server in a dictionary, as quick as a test wants it: list, watch, create, patch and delete, with versions.

What it cannot do (schemas, rights, admission, owners that take what they own with them) is tested on real ones.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import parse_qs

from stromboli.kube.api_resources import Resource
from stromboli.kube.request import ApiError, Request

Manifest = dict[str, Any]
_PATH = re.compile(
    r"/(?:api|apis/[^/]+)/[^/]+(?:/namespaces/(?P<namespace>[^/]+))?/(?P<plural>[^/]+)(?:/(?P<name>[^/]+))?(?:/(?P<part>\w+))?"
)


class InMemoryApi:
    """Objects by plural, namespace and name. `requests` has every request."""

    def __init__(self) -> None:
        self.objects: dict[tuple[str, str, str], Manifest] = {}
        self.requests: list[Request] = []
        self.before: Callable[[Request], None] = lambda request: None
        """Called before a request is carried out; may raise."""
        self.after: Callable[[Request], None] = lambda request: None
        """Called after it: what it raises is an answer that was lost."""
        self._version = 0
        self._changes: list[tuple[int, str, str, Manifest]] = []

    # -- what a test does

    def put(self, plural: str, obj: Manifest) -> Manifest:
        """An object, as somebody else would write it."""
        meta = obj.setdefault("metadata", {})
        key = (plural, meta.get("namespace", ""), meta["name"])
        meta.setdefault("uid", self.objects.get(key, obj)["metadata"].get("uid", f"uid-{meta['name']}"))
        meta.setdefault("creationTimestamp", "2026-01-01T00:00:00Z")
        return self._store("MODIFIED" if key in self.objects else "ADDED", key, obj)

    def remove(self, plural: str, name: str, namespace: str = "") -> None:
        self._forget((plural, namespace, name))

    def find(self, plural: str, name: str, namespace: str = "") -> Manifest:
        return self.objects[plural, namespace, name]

    def every(self, plural: str) -> list[Manifest]:
        return [obj for key, obj in self.objects.items() if key[0] == plural]

    @property
    def writes(self) -> list[Request]:
        """All that was written, but for events."""
        return [
            request for request in self.requests if request.method != "GET" and "/events" not in request.path
        ]

    @property
    def events(self) -> list[tuple[str, str]]:
        """Reason and message of every event."""
        return [(event["reason"], event["message"]) for event in self.every("events")]

    # -- a client's side

    async def send(self, request: Request, timeout: float = 30.0) -> bytes:
        self.requests.append(request)
        await asyncio.sleep(0)
        self.before(request)
        answer = json.dumps(self._answer(request)).encode()
        self.after(request)
        return answer

    async def list(self, resource: Resource, namespace: str = "", **query: str | int) -> bytes:
        wanted = _selector(namespace, str(query.get("fieldSelector", "")))
        items = [json.loads(json.dumps(obj)) for obj in self.every(resource.plural) if wanted(obj)]
        return json.dumps({"metadata": {"resourceVersion": str(self._version)}, "items": items}).encode()

    @asynccontextmanager
    async def stream(self, path: str, idle_timeout: float) -> AsyncIterator[AsyncIterator[bytes]]:
        where, _, text = path.partition("?")
        query = {key: values[0] for key, values in parse_qs(text).items()}
        match = _PATH.fullmatch(where)
        assert match is not None, where
        wanted = _selector(match["namespace"] or "", query.get("fieldSelector", ""))
        yield self._lines(match["plural"], int(query["resourceVersion"]), wanted)

    async def _lines(
        self, plural: str, since: int, wanted: Callable[[Manifest], bool]
    ) -> AsyncIterator[bytes]:
        seen = 0
        while True:
            while seen < len(self._changes):
                version, kind, type_, obj = self._changes[seen]
                seen += 1
                if version > since and kind == plural:
                    type_ = type_ if wanted(obj) else "DELETED"
                    yield json.dumps({"type": type_, "object": obj}).encode() + b"\n"
            await asyncio.sleep(0.001)

    # -- one request

    def _answer(self, request: Request) -> Any:
        match = _PATH.fullmatch(request.path)
        assert match is not None, request.path
        key = (match["plural"], match["namespace"] or "", match["name"] or "")
        body = json.loads(request.body or b"null")
        if request.method == "POST":
            return self._create(match["plural"], match["namespace"] or "", body)
        if key not in self.objects:
            raise ApiError(404, "NotFound", f"{key} not found")
        if request.method == "GET":
            return self.objects[key]
        if request.method == "DELETE":
            self._same(key, (body or {}).get("preconditions", {}))
            return self._forget(key)
        assert request.method == "PATCH"
        return self._patch(key, body, match["part"])

    def _create(self, plural: str, namespace: str, body: Manifest) -> Manifest:
        meta = body["metadata"]
        if namespace:
            meta["namespace"] = namespace
        key = (plural, namespace, meta["name"])
        if key in self.objects:
            raise ApiError(409, "AlreadyExists", f"{meta['name']} already exists")
        meta.setdefault("uid", f"uid-{meta['name']}-{self._version}")
        meta.setdefault("creationTimestamp", "2026-01-01T00:00:00Z")
        return self._store("ADDED", key, body)

    def _patch(self, key: tuple[str, str, str], patch: Manifest, part: str | None) -> Manifest:
        self._same(key, patch.get("metadata", {}))
        before = self.objects[key]
        patch = json.loads(json.dumps(patch))
        for field in ("uid", "resourceVersion"):
            patch.get("metadata", {}).pop(field, None)
        if part == "status":
            patch = {"status": patch.get("status", {})}
        after = merged(before, patch)
        return before if after == before else self._store("MODIFIED", key, after)

    def _same(self, key: tuple[str, str, str], conditions: Manifest) -> None:
        meta = self.objects[key]["metadata"]
        for field in ("uid", "resourceVersion"):
            if conditions.get(field, meta[field]) != meta[field]:
                raise ApiError(
                    409, "Conflict", f"Precondition failed: {field.upper()} in precondition: {key}"
                )

    def _store(self, type_: str, key: tuple[str, str, str], obj: Manifest) -> Manifest:
        self._version += 1
        obj = json.loads(json.dumps(obj))
        obj["metadata"]["resourceVersion"] = str(self._version)
        self.objects[key] = obj
        self._changes.append((self._version, key[0], type_, obj))
        return obj

    def _forget(self, key: tuple[str, str, str]) -> Manifest:
        obj = self.objects.pop(key)
        self._version += 1
        gone = json.loads(json.dumps(obj))
        gone["metadata"]["resourceVersion"] = str(self._version)
        self._changes.append((self._version, key[0], "DELETED", gone))
        return gone


def _selector(namespace: str, fields: str) -> Callable[[Manifest], bool]:
    """Whether an object is in a namespace and matches a field selector."""
    terms = [term.partition("!=" if "!=" in term else "=") for term in fields.split(",") if term]

    def wanted(obj: Manifest) -> bool:
        if namespace and obj["metadata"].get("namespace") != namespace:
            return False
        return all((_field(obj, path) == value) == (sign == "=") for path, sign, value in terms)

    return wanted


def _field(obj: Manifest, path: str) -> str:
    value: Any = obj
    for part in path.split("."):
        value = value.get(part) if isinstance(value, dict) else None
    return value or ""


def merged(obj: Any, patch: Any) -> Any:
    """A JSON merge patch (RFC 7386)."""
    if not isinstance(patch, dict):
        return patch
    result = dict(obj) if isinstance(obj, dict) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = merged(result.get(key), value)
    return result
