"""Pods on a node that does not exist, where no kubelet stops them: they fail, and are deleted.

A pod that is being deleted goes at once; any other after a quarantine, in which its node may be registered.
"""

from __future__ import annotations

from collections.abc import Iterator

from stromboli.api import names
from stromboli.api.pods import FINISHED
from stromboli.embedded.kinds.kind import Content
from stromboli.embedded.kube_controllers.controller import ServerContext, StoreController
from stromboli.embedded.objects.subresources import set_condition
from stromboli.embedded.store.records import Change, Key, Record
from stromboli.embedded.store.stored_pods import stored_pod
from stromboli.embedded.time_slices import TimeSlices

QUARANTINE = 40.0
"""Seconds until a pod is deleted whose node does not exist, as in kube-controller-manager."""
_DISRUPTED = {
    "type": "DisruptionTarget",
    "status": "True",
    "reason": "DeletionByPodGC",
    "message": "PodGC: node no longer exists",
}


class PodGarbageCollector(StoreController):
    name = "pod-garbage-collector"

    def __init__(self, context: ServerContext) -> None:
        super().__init__(context)
        self._quarantine: dict[Key, float] = {}
        """When pods whose node does not exist are deleted."""

    def initial_keys(self) -> Iterator[Key]:
        pods = self._objects.store.list("pods")
        return (pod.key for pod in pods if _node_name(pod) and not self._node_exists(pod))

    def keys_for(self, change: Change) -> Iterator[Key]:
        resource, after = change.key.resource, change.after
        if resource == "nodes" or (
            resource == "pods"
            and after is not None
            and (after.meta.deletion_timestamp or (_node_name(after) and not self._node_exists(after)))
        ):
            yield change.key

    async def reconcile(self, key: Key) -> None:
        record = self._objects.store.get(*key)
        if key.resource == "nodes" and record is None:
            for pod in await self._pods_of_node(key.name):
                self.queue.add(pod.key)
        elif key.resource == "pods":
            if record is None or self._node_exists(record):
                self._quarantine.pop(key, None)
            else:
                await self._collect(record)

    def _node_exists(self, pod: Record) -> bool:
        return self._objects.store.get("nodes", "", _node_name(pod)) is not None

    async def _pods_of_node(self, name: str) -> list[Record]:
        pods, slices = [], TimeSlices()
        for pod in self._objects.store.list("pods"):
            if _node_name(pod) == name:
                pods.append(pod)
            if slices.due:
                await slices.pause()
        return pods

    async def _collect(self, pod: Record) -> None:
        if pod.meta.deletion_timestamp:
            self._objects.system_update(pod, _fail)
        elif _node_name(pod):
            now = self.queue.clock.time()
            left = self._quarantine.setdefault(pod.key, now + QUARANTINE) - now
            if left > 0:
                self.queue.add_after(pod.key, left)
            else:
                self._objects.system_update(pod, _disrupt)
                await self._delete(pod)


def _node_name(pod: Record) -> str:
    return stored_pod(pod).spec.node_name


def _fail(pod: Content) -> None:
    """Finalizers may keep the pod: those who wait for its end must see that it ended."""
    pod["metadata"]["deletionGracePeriodSeconds"] = 0
    _end(pod)


def _disrupt(pod: Content) -> None:
    _end(pod)
    set_condition(pod, _DISRUPTED)


def _end(pod: Content) -> None:
    """Let a pod fail that has not finished."""
    status = pod.setdefault("status", {})
    if status.get("phase") not in FINISHED:
        status["phase"] = names.POD_FAILED
