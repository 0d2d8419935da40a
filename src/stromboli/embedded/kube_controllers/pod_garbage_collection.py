"""Pods that are being deleted on a node that does not exist: no kubelet will stop them, so they fail and go at once."""

from __future__ import annotations

from collections.abc import Iterator

from stromboli.embedded.kinds.kind import Content
from stromboli.embedded.kube_controllers.controller import Controller
from stromboli.embedded.store.records import Change, Key, Record
from stromboli.embedded.time_slices import TimeSlices


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
            pods = await self._pods_of_node(key.name)
        elif key.resource == "pods" and record is not None:
            pods = [record] if store.get("nodes", "", record.field("spec.nodeName")) is None else []
        for pod in pods:
            if pod.meta.deletion_timestamp:
                self._objects.system_update(pod, _fail)

    async def _pods_of_node(self, name: str) -> list[Record]:
        pods, slices = [], TimeSlices()
        for pod in self._objects.store.list("pods"):
            if pod.field("spec.nodeName") == name:
                pods.append(pod)
            if slices.due:
                await slices.pause()
        return pods


def _fail(pod: Content) -> None:
    """Finalizers may keep the pod: those who wait for its end must see that it ended."""
    pod["metadata"]["deletionGracePeriodSeconds"] = 0
    status = pod.setdefault("status", {})
    if status.get("phase") not in ("Succeeded", "Failed"):
        status["phase"] = "Failed"
