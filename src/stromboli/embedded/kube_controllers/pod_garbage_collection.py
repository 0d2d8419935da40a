"""Pods that are being deleted on a node that does not exist: no kubelet will stop them, so they go at once."""

from __future__ import annotations

from collections.abc import Iterator

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
        store, pods = self._objects.store, list[Record]()
        record = store.get(*key)
        if key.resource == "nodes" and record is None:
            pods = [pod for pod in store.list("pods") if pod.field("spec.nodeName") == key.name]
        elif key.resource == "pods" and record is not None:
            pods = [record] if store.get("nodes", "", record.field("spec.nodeName")) is None else []
        for pod in pods:
            if pod.meta.deletion_timestamp:
                self._objects.system_update(
                    pod, lambda content: content["metadata"].update(deletionGracePeriodSeconds=0)
                )
