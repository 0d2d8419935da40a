"""A command's connection to a cluster, and the objects that it reads and writes there."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import msgspec

from stromboli.api.patches import MERGE
from stromboli.cli.cluster.cluster_errors import ClusterError
from stromboli.cli.cluster.cluster_kinds import Manifest, full_name
from stromboli.embedded.running_clusters import RunningCluster
from stromboli.kube.api_client import Client, TooLarge, with_query
from stromboli.kube.api_resources import Resource
from stromboli.kube.request import JSON, ApiError, NoResponse, Request
from stromboli.kube.watch_decoding import LineSplitter

PAGE_SIZE = 500
PART_PAGE_SIZE = 50
"""Where only the first objects are wanted, however large each is."""
LARGEST_PART = 16 * 1024 * 1024
"""Bytes after which no more of these are read."""
LARGEST_LIST = 512 * 1024 * 1024
"""Bytes of all pages of a list together."""
WATCH_IDLE_SECONDS = 600.0
"""Without any event or bookmark, after which a watch is begun anew."""
DRY_RUN = "All"
UNKNOWN_PATH = ("404 page not found", "the server could not find the requested resource")
"""What API servers answer where they do not serve a kind; of an object that is missing they tell the name."""


class ObjectList(NamedTuple):
    """Objects of one kind, and the version of the cluster in which they were so."""

    items: list[Manifest]
    version: str


class ObjectChange(NamedTuple):
    """One event of a watch: ADDED, MODIFIED or DELETED."""

    type: str
    object: Manifest


@dataclass(frozen=True, slots=True)
class ClusterSession:
    """The cluster that a command was given, and the namespace that it means."""

    client: Client
    running: RunningCluster | None
    """The cluster of `stromboli up`, if it is one."""
    namespace: str
    """By -n, else that of the context, else `default`."""
    all_namespaces: bool = False
    namespace_given: bool = False
    """Whether it was by -n."""

    @property
    def scope(self) -> str:
        """The namespace of lists; empty for all."""
        return "" if self.all_namespaces else self.namespace

    # -- reading

    async def get(self, resource: Resource, name: str, namespace: str | None = None) -> Manifest:
        """An object; `ClusterError` if there is none of that name."""
        where = self.namespace if namespace is None else namespace
        object = await self.find(resource, name, where)
        if object is None:
            inside = f" in namespace {where}" if resource.namespaced else ""
            raise ClusterError(f"{full_name(resource, name)} does not exist{inside}")
        return object

    async def find(self, resource: Resource, name: str, namespace: str | None = None) -> Manifest | None:
        """An object, or None if there is none of that name."""
        where = self.namespace if namespace is None else namespace
        try:
            return _decoded(await self.client.get(resource, name, where if resource.namespaced else ""))
        except ApiError as error:
            if error.status != 404:
                raise
            if str(error) in UNKNOWN_PATH:
                raise absent(resource) from None
            return None

    async def list(
        self,
        resource: Resource,
        namespace: str | None = None,
        labels: str = "",
        fields: str = "",
        most: int = 0,
    ) -> ObjectList:
        """All objects of a kind in the scope, in pages; none if the kind is not installed is an error of its own.

        With `most` reading ends with the page that has so many, or more bytes than a part of a list may have.
        """
        items: list[Manifest] = []
        token, version, size = "", "", 0
        limit = min(PART_PAGE_SIZE, most) if most else PAGE_SIZE
        while True:
            try:
                body = await self.client.list(
                    resource,
                    self.scope if namespace is None else namespace,
                    limit=limit,
                    labelSelector=labels,
                    fieldSelector=fields,
                    **{"continue": token},
                )
            except TooLarge:
                if limit == 1:
                    raise
                limit = max(1, limit // 2)
                continue
            except ApiError as error:
                if error.status == 404:
                    raise absent(resource) from None
                raise
            size += len(body)
            if size > LARGEST_LIST:
                raise ClusterError(f"all {resource.plural} together are larger than {LARGEST_LIST} bytes")
            page = _decoded(body)
            items += [_completed(item, resource) for item in page.get("items") or ()]
            metadata = page.get("metadata") or {}
            token, version = metadata.get("continue") or "", metadata.get("resourceVersion") or ""
            if not token or (most and (len(items) >= most or size > LARGEST_PART)):
                return ObjectList(items, version)

    async def watch(
        self,
        resource: Resource,
        version: str,
        namespace: str | None = None,
        labels: str = "",
        fields: str = "",
    ) -> AsyncIterator[ObjectChange]:
        """Changes after a version, until the watch breaks: `ApiError` 410 if the version is too old."""
        query: dict[str, str | int] = {
            "watch": "true",
            "labelSelector": labels,
            "fieldSelector": fields,
            "resourceVersion": version,
            "allowWatchBookmarks": "true",
        }
        where = self.scope if namespace is None else namespace
        path = with_query(resource.path(where), query)
        splitter = LineSplitter()
        async with self.client.stream(path, WATCH_IDLE_SECONDS) as pieces:
            async for piece in pieces:
                for line in _lines(splitter, piece, resource):
                    event = _decoded(line)
                    object = event.get("object") or {}
                    if event.get("type") == "ERROR":
                        raise ApiError(
                            int(object.get("code") or 500), "Expired", str(object.get("message") or "")
                        )
                    yield ObjectChange(str(event.get("type") or ""), _completed(object, resource))

    # -- writing

    async def create(
        self, resource: Resource, manifest: Manifest, namespace: str | None = None, dry_run: bool = False
    ) -> Manifest:
        """Create an object; with `dry_run` the API server only checks it."""
        where = self.namespace if namespace is None else namespace
        path = resource.path(where if resource.namespaced else "")
        try:
            return await self._send("POST", path, manifest, JSON, dry_run)
        except ApiError as error:
            if error.status == 404 and str(error) in UNKNOWN_PATH:
                raise absent(resource) from None
            raise

    async def patch(
        self,
        resource: Resource,
        name: str,
        patch: Any,
        namespace: str | None = None,
        subresource: str = "",
        content_type: str = MERGE,
        dry_run: bool = False,
    ) -> Manifest:
        where = self.namespace if namespace is None else namespace
        path = resource.path(where if resource.namespaced else "", name, subresource)
        return await self._send("PATCH", path, patch, content_type, dry_run)

    async def replace(
        self, resource: Resource, manifest: Manifest, namespace: str | None = None, dry_run: bool = False
    ) -> Manifest:
        """Put a changed object in the place of the one that was read; a conflict if that has changed since."""
        where = self.namespace if namespace is None else namespace
        path = resource.path(where if resource.namespaced else "", manifest["metadata"]["name"])
        return await self._send("PUT", path, manifest, JSON, dry_run)

    async def delete(
        self, resource: Resource, name: str, namespace: str | None = None, dry_run: bool = False
    ) -> None:
        """Delete an object, and what it owns after it."""
        where = self.namespace if namespace is None else namespace
        path = resource.path(where if resource.namespaced else "", name)
        options: Manifest = {"propagationPolicy": "Background"}
        if dry_run:
            options["dryRun"] = [DRY_RUN]  # an API server that is sent options does not look at the query
        await self._send("DELETE", path, options, JSON, dry_run)

    async def _send(self, method: str, path: str, body: Any, content_type: str, dry_run: bool) -> Manifest:
        path = with_query(path, {"dryRun": DRY_RUN if dry_run else ""})
        return await self.send(Request(method, path, msgspec.json.encode(body), content_type))

    async def send(self, request: Request) -> Manifest:
        """Any request that an object answers."""
        return _decoded(await self.client.send_with_retries(request))


def absent(resource: Resource) -> ClusterError:
    """That a cluster does not have a kind."""
    return ClusterError(
        f"the cluster has no {resource.plural}.{resource.group or 'core'}: is Stromboli or Volcano installed?"
        " `stromboli check` tells"
    )


def _lines(splitter: LineSplitter, piece: bytes, resource: Resource) -> Iterator[bytes]:
    """The lines of a watch that a piece completes."""
    try:
        yield from splitter.feed(piece)
    except ValueError as error:
        raise ClusterError(f"the watch of {resource.plural} sends what no object can be: {error}") from None


def _completed(manifest: Manifest, resource: Resource) -> Manifest:
    """Items of a list have neither version nor kind."""
    return {"apiVersion": resource.api_version, "kind": resource.kind, **manifest}


def _decoded(body: bytes) -> Manifest:
    try:
        content = msgspec.json.decode(body)
    except (msgspec.DecodeError, RecursionError) as error:
        raise NoResponse(f"the server answers with what is no JSON: {error}") from None
    if not isinstance(content, dict):
        raise NoResponse("the server answers with what is no object")
    return content
