"""Pods that are being deleted on a node that does not exist: no kubelet will stop them, so they go at once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from stromboli.embedded.kube_controllers.controller import Controller
from stromboli.embedded.store.records import Change, Key, Record


class PodGarbageCollector(Controller):
    def keys_for(self, change: Change) -> Iterator[Key]:
        resource, after = change.key.resource, change.after
        if resource == "nodes" or (
            resource == "pods" and after is not None and after.meta.deletion_timestamp
        ):
            yield change.key

    async def reconcile(self, key: Key) -> None:
        store = self._objects.store
        if key.resource == "nodes" and store.get(*key) is None:
            pods = list(store.list("pods"))
            self._collect(pod for pod in pods if pod.field("spec.nodeName") == key.name)
        elif key.resource == "pods" and (record := store.get(*key)) is not None:
            node = store.get("nodes", "", record.field("spec.nodeName"))
            self._collect([record] if node is None else [])

    def _collect(self, pods: Iterable[Record]) -> None:
        for pod in pods:
            if pod.meta.deletion_timestamp:
                self._objects.system_update(
                    pod, lambda content: content["metadata"].update(deletionGracePeriodSeconds=0)
                )
