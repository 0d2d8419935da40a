"""Endpoints and EndpointSlices that follow the selectors of Services and the readiness of pods.

A change of one pod is noted for the Services that select it. A Service with many pods takes long to look at, so it
rests in proportion to that before it is looked at again: n changes of its pods do not cost n looks at n pods.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sized
from typing import TypeVar, TypeVarTuple

from stromboli.api.schemas.services.service_types import EXTERNAL_NAME
from stromboli.embedded.admission.write_request import WriteRequest
from stromboli.embedded.api_status import StatusError
from stromboli.embedded.auth.identity import APISERVER_USER
from stromboli.embedded.kinds.kind import Content
from stromboli.embedded.kube_controllers.controller import ServerContext, StoreController
from stromboli.embedded.kube_controllers.services import endpoint_mirroring, endpoint_slices, endpoint_subsets
from stromboli.embedded.kube_controllers.services.endpoint_mirroring import mirror_changes
from stromboli.embedded.kube_controllers.services.endpoint_slices import SliceChanges, slice_changes
from stromboli.embedded.kube_controllers.services.endpoint_subsets import endpoints_of
from stromboli.embedded.kube_controllers.services.service import Service
from stromboli.embedded.objects.service_addresses import SERVICES
from stromboli.embedded.store.records import Change, Key, Record
from stromboli.embedded.store.stored_pods import StoredPod, stored_pod
from stromboli.embedded.time_slices import TimeSlices

ENDPOINTS, SLICES = "endpoints", "endpointslices.discovery.k8s.io"
ZONE = "topology.kubernetes.io/zone"
MANY_PODS = 200
"""From so many pods on, endpoints are computed on a thread, so that the event loop serves others meanwhile."""

Arguments = TypeVarTuple("Arguments")
Result = TypeVar("Result")


class EndpointsController(StoreController):
    """Makes the endpoints of all Services with a selector."""

    name = "endpoints-controller"
    component = "endpoint-controller"
    rest_factor = 9.0

    def __init__(self, context: ServerContext) -> None:
        super().__init__(context)
        self._selectors = SelectorsIndex()
        self._slices: dict[Key, set[Key]] = {}
        """The slices of Services."""
        self._written: dict[Key, int] = {}
        """The revisions of endpoints and slices as this controller wrote them."""

    # -- what a change concerns

    def initial_keys(self) -> Iterator[Key]:
        store = self._objects.store
        for record in store.list(SLICES):
            self._index_slice(None, record)
        for record in store.list(SERVICES):
            self._selectors.update(None, record)
            yield record.key
        for record in store.list(ENDPOINTS):
            if endpoint_subsets.MANAGED_BY in record.labels:
                yield _service_key(record.key.namespace, record.key.name)

    def keys_for(self, change: Change) -> Iterable[Key]:
        resource = change.key.resource
        if resource == "pods":
            return self._keys_of_pod(change)
        if resource == SERVICES:
            self._selectors.update(change.before, change.after)
            return (change.key,)
        if resource == SLICES:
            self._index_slice(change.before, change.after)
            record = change.after or change.before
            name = record.labels.get(endpoint_slices.SERVICE_NAME) if record is not None else None
            return self._unless_written(change, name or "")
        if resource == ENDPOINTS:
            return self._unless_written(change, change.key.name)
        if resource == "nodes" and change.before is not None and change.after is not None:
            same = change.before.labels.get(ZONE) == change.after.labels.get(ZONE)
            return () if same else [record.key for record in self._objects.store.list(SERVICES)]
        return ()

    def _keys_of_pod(self, change: Change) -> Iterable[Key]:
        namespace, versions = change.key.namespace, (change.before, change.after)
        names = {
            name
            for record in versions
            if record is not None
            for name in self._selectors.matching(namespace, record.labels)
        }
        if not names or (change.before and change.after and _is_alike(change.before, change.after)):
            return ()
        return [_service_key(namespace, name) for name in sorted(names)]

    def _unless_written(self, change: Change, service: str) -> Iterable[Key]:
        """Endpoints that somebody else changes are put right."""
        written = self._written.get(change.key)
        if change.after is None:
            self._written.pop(change.key, None)
        elif written is not None and written >= change.after.revision:
            return ()
        key = _service_key(change.key.namespace, service)
        return (key,) if self._objects.store.get(*key) is not None else ()

    def _index_slice(self, before: Record | None, after: Record | None) -> None:
        for record in (before, after):
            name = record.labels.get(endpoint_slices.SERVICE_NAME) if record is not None else None
            if record is None or not name:
                continue
            key = _service_key(record.key.namespace, name)
            if record is after:
                self._slices.setdefault(key, set()).add(record.key)
            elif slices := self._slices.get(key):
                slices.discard(record.key)
                if not slices:
                    del self._slices[key]

    # -- reconciliation

    async def reconcile(self, key: Key) -> None:
        if key.resource != SERVICES:
            return
        record = self._objects.store.get(*key)
        if record is None:
            self.rests_until.pop(key, None)
            await self._remove_endpoints(key)
        else:
            start = time.monotonic()
            await self._publish(Service(record.object()))
            self.rest(key, time.monotonic() - start)

    async def _remove_endpoints(self, key: Key) -> None:
        """Those of a Service that is gone; its slices are collected with it."""
        record = self._objects.store.get(ENDPOINTS, key.namespace, key.name)
        if record is not None:
            await self._delete(record)

    async def _publish(self, service: Service) -> None:
        if service.spec.get("type") == EXTERNAL_NAME:
            return
        if service.selector is None:  # who makes such a Service makes its endpoints
            record = self._objects.store.get(ENDPOINTS, service.namespace, service.name)
            existing = await self._existing_slices(service, endpoint_mirroring.CONTROLLER)
            endpoints = record.object() if record is not None else None
            await self._apply(service, mirror_changes(endpoints, existing))
            return
        pods = await self._pods(service)
        await self._write_endpoints(service, await _computed(pods, endpoints_of, service, pods))
        await asyncio.sleep(0)
        await self._write_slices(service, pods)

    async def _pods(self, service: Service) -> list[StoredPod]:
        selector, pods, slices = (service.selector or {}).items(), list[StoredPod](), TimeSlices()
        for record in list(self._objects.store.list("pods", service.namespace)):
            if slices.due:
                await slices.pause()
            if selector <= record.labels.items():
                pods.append(stored_pod(record))
        return pods

    async def _write_endpoints(self, service: Service, wanted: Content) -> None:
        record = self._objects.store.get(ENDPOINTS, service.namespace, service.name)
        if record is None:
            if not service.is_being_deleted:
                await self._create_here(ENDPOINTS, service.namespace, wanted)
            return

        def update(content: Content) -> None:
            meta = content["metadata"]
            meta["labels"] = wanted["metadata"]["labels"]
            annotations = {**(meta.get("annotations") or {}), **(wanted["metadata"].get("annotations") or {})}
            if "annotations" not in wanted["metadata"]:
                annotations.pop(endpoint_subsets.OVER_CAPACITY, None)
            meta.pop("annotations", None)
            if annotations:
                meta["annotations"] = annotations
            content.pop("subsets", None)
            if "subsets" in wanted:
                content["subsets"] = wanted["subsets"]

        self._update(record, update)

    async def _write_slices(self, service: Service, pods: list[StoredPod]) -> None:
        existing = await self._existing_slices(service, endpoint_slices.CONTROLLER)
        zones = {node: self._zone(node) for node in {pod.spec.node_name for pod in pods}}
        await self._apply(service, await _computed(pods, slice_changes, service, pods, existing, zones.get))

    async def _existing_slices(self, service: Service, manager: str) -> list[Content]:
        """Those of a Service that are managed as these are."""
        existing, slices = list[Content](), TimeSlices()
        for key in sorted(self._slices.get(_key_of(service), ())):
            record = self._objects.store.get(*key)
            if record is not None and record.labels.get(endpoint_slices.MANAGED_BY) == manager:
                existing.append(record.object())
            if slices.due:
                await slices.pause()
        return existing

    async def _apply(self, service: Service, changes: SliceChanges) -> None:
        store = self._objects.store
        for content in () if service.is_being_deleted else changes.create:
            await self._create_here(SLICES, service.namespace, content)
            await asyncio.sleep(0)
        for content in changes.update:
            self._replace_slice(content)
            await asyncio.sleep(0)
        for content in changes.delete:
            record = store.get(SLICES, service.namespace, content["metadata"]["name"])
            if record is not None:
                await self._delete(record)

    def _zone(self, node: str) -> str | None:
        record = self._objects.store.get("nodes", "", node)
        return record.labels.get(ZONE, "") if record is not None else None

    def _replace_slice(self, content: Content) -> None:
        meta = content["metadata"]
        record = self._objects.store.get(SLICES, meta["namespace"], meta["name"])
        if record is None:
            return

        def update(stored: Content) -> None:
            stored["metadata"]["labels"] = meta["labels"]
            for field in ("endpoints", "ports"):
                stored[field] = content.get(field) or []

        self._update(record, update)

    # -- writes

    def _update(self, record: Record, change: Callable[[Content], None]) -> None:
        def with_generation(content: Content) -> None:
            generation = content["metadata"].get("generation")
            change(content)
            if generation is not None and content != record.object():
                content["metadata"]["generation"] = generation + 1

        updated = self._objects.system_update(record, with_generation)
        if updated is not None:
            self._written[record.key] = updated.revision

    async def _create_here(self, resource: str, namespace: str, content: Content) -> None:
        request = WriteRequest(self._kind(resource), namespace, "", APISERVER_USER, manager=self.component)
        try:
            await self._objects.create(request, content)
        except StatusError as error:
            if error.code not in (403, 409):  # a namespace that is being deleted takes none
                raise
        record = self._objects.store.get(resource, namespace, content["metadata"]["name"])
        if record is not None:
            self._written[record.key] = record.revision


async def _computed(pods: Sized, compute: Callable[[*Arguments], Result], *arguments: *Arguments) -> Result:
    """What a function makes of pods, which nobody else changes."""
    if len(pods) < MANY_PODS:
        return compute(*arguments)
    return await asyncio.to_thread(compute, *arguments)


def _is_alike(before: Record, after: Record) -> bool:
    """Whether two versions of a pod have the same endpoints."""
    return stored_pod(before) == stored_pod(after)


def _key_of(service: Service) -> Key:
    return _service_key(service.namespace, service.name)


def _service_key(namespace: str, name: str) -> Key:
    return Key(SERVICES, namespace, name)


Label = tuple[str, str, str]
"""Namespace, key and value."""


class SelectorsIndex:
    """Selectors of Services by one of their labels; an empty selector selects every pod of its namespace."""

    def __init__(self) -> None:
        self._by_label: dict[Label, dict[str, Mapping[str, str]]] = {}

    def update(self, before: Record | None, after: Record | None) -> None:
        """A Service was created, changed or deleted."""
        for record in (before, after):
            selector = _selector(record) if record is not None else None
            if record is None or selector is None:
                continue
            label = _leading_label(record.key.namespace, selector)
            if record is after:
                self._by_label.setdefault(label, {})[record.key.name] = selector
            elif services := self._by_label.get(label):
                services.pop(record.key.name, None)
                if not services:
                    del self._by_label[label]

    def matching(self, namespace: str, labels: Mapping[str, str]) -> Iterator[str]:
        """The names of the Services that select a pod with these labels."""
        for key, value in (("", ""), *labels.items()):
            for name, selector in self._by_label.get((namespace, key, value), {}).items():
                if selector.items() <= labels.items():
                    yield name


def _selector(record: Record) -> Mapping[str, str] | None:
    selector: Mapping[str, str] | None = (record.object().get("spec") or {}).get("selector")
    return selector


def _leading_label(namespace: str, selector: Mapping[str, str]) -> Label:
    key = min(selector, default="")
    return (namespace, key, selector.get(key, ""))
