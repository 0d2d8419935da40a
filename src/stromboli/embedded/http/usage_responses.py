"""Objects of `metrics.k8s.io`: made for each request, of what nodes say and of the labels of nodes and pods."""

from __future__ import annotations

import time
from typing import Any

import msgspec

from stromboli.api.go_scalars import timestamp
from stromboli.embedded.http.list_pages import Page, list_page
from stromboli.embedded.http.query_parameters import Query
from stromboli.embedded.kinds.kind import Kind
from stromboli.embedded.kinds.status_errors import not_found
from stromboli.embedded.nodes.usage.cluster_usage import Usage, UsageSource
from stromboli.embedded.objects.object_verbs import Objects
from stromboli.embedded.store.records import Key, Record
from stromboli.embedded.time_slices import TimeSlices

_SELECTORS = ("labelSelector", "fieldSelector")


class UsageResponses:
    """Answers lists and gets of metrics of nodes and pods."""

    def __init__(self, objects: Objects, source: UsageSource) -> None:
        self._objects = objects
        self._source = source

    def stored_kind(self, kind: Kind) -> Kind:
        """Nodes or pods, for their metrics."""
        stored = self._objects.registry.by_id(kind.plural)
        assert stored is not None
        return stored

    async def page(self, kind: Kind, namespace: str, query: Query) -> Page:
        """All metrics at once, as clients of this API expect; those of nodes and pods that do not run are missing."""
        stored = self.stored_kind(kind)
        selectors = {name: query[name] for name in _SELECTORS if name in query}
        await self._source.measure()
        page = await list_page(self._objects.store, stored, namespace, selectors)
        records: list[Record] = []
        slices = TimeSlices()
        for record in page.records:
            if slices.due:
                await slices.pause()
            if (metrics := await self._metrics(kind, record)) is not None:
                records.append(metrics)
        return Page(records, page.meta)

    async def get(self, kind: Kind, namespace: str, name: str) -> Record:
        await self._source.measure()
        record = self._objects.store.get(kind.plural, namespace, name)
        metrics = await self._metrics(kind, record) if record is not None else None
        if metrics is None:
            raise not_found(kind, f"{namespace}/{name}" if namespace else name)
        return metrics

    async def _metrics(self, kind: Kind, record: Record) -> Record | None:
        """Of a node or pod; None if it does not run."""
        namespace, name = record.key.namespace, record.key.name
        used: dict[str, Any]
        if kind.namespaced:
            containers = self._source.pod_usage(namespace, name)
            used = {"containers": [{"name": each.name, "usage": _amounts(each.usage)} for each in containers]}
            windows = [each.usage.window for each in containers]
        else:
            usage = await self._source.node_usage(name)
            used = {} if usage is None else {"usage": _amounts(usage)}
            windows = [] if usage is None else [usage.window]
        if not windows:
            return None
        now = timestamp(time.time())
        meta: dict[str, Any] = {"name": name, "creationTimestamp": now}
        if namespace:
            meta["namespace"] = namespace
        if record.labels:
            meta["labels"] = record.labels
        content = {"kind": kind.kind, "apiVersion": kind.api_version, "metadata": meta}
        content |= {"timestamp": now, "window": f"{max(windows):.3f}".rstrip("0").rstrip(".") + "s", **used}
        return Record(Key(kind.id, namespace, name), 0, msgspec.json.encode(content))


def _amounts(usage: Usage) -> dict[str, str]:
    """As quantities: billionths of a CPU, and KiB."""
    return {"cpu": f"{round(usage.cpus * 1e9)}n", "memory": f"{usage.memory // 1024}Ki"}
