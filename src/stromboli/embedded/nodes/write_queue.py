"""Writes of nodes to the API server: one per object at a time, of pending statuses the newest alone, with retries."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass

import msgspec

from stromboli.api.patches import MERGE, STRATEGIC
from stromboli.daemon.telemetry_guard import TelemetryGuard
from stromboli.embedded.nodes import node_annotations
from stromboli.embedded.nodes.node_types import Content, NodePod
from stromboli.embedded.nodes.pod_status_patches import patch
from stromboli.kube.api_resources import Resource
from stromboli.kube.event_recorder import EventRecorder, ObjectReference, PendingEvent
from stromboli.kube.keyed_queue import KeyedQueue
from stromboli.kube.request import Api, ApiError, Backoff, NoResponse, Request, is_transient

log = logging.getLogger(__name__)

PODS = Resource("", "v1", "pods", "Pod")
NODES = Resource("", "v1", "nodes", "Node", namespaced=False)
LEASES = Resource("coordination.k8s.io", "v1", "leases", "Lease")
APPLY = "application/apply-patch+yaml"
WIDTH = 16
TIMEOUT = 15.0
ATTEMPTS = 8


@dataclass(slots=True)
class PendingWrite:
    """A request, and what to call if it fails for good."""

    request: Request
    replaceable: bool = False
    """A later write of its kind contains everything that this one does."""
    failed: Callable[[Exception], None] | None = None
    failures: int = 0


class WriteQueue:
    """Pending writes by object."""

    def __init__(self, client: Api, clock: Callable[[], float] = time.time) -> None:
        self._client = client
        self._clock = clock
        self._events = EventRecorder(node_annotations.AGENT, node_annotations.AGENT, clock)
        self._guard = TelemetryGuard()
        self._backoff = Backoff(first=0.1, longest=5.0)
        self.queue: KeyedQueue[PendingWrite] = KeyedQueue(self._send, WIDTH, _newest)

    def patch_status(
        self, pod: NodePod, status: Content, failed: Callable[[Exception], None] | None = None
    ) -> None:
        """Patch a pod's status by condition and container, so that those of other writers stay."""
        path = PODS.path(pod.namespace, pod.name, "status")
        body = msgspec.json.encode(patch(status, pod.uid))
        self._put(pod.uid, PendingWrite(Request("PATCH", path, body, STRATEGIC), True, failed))

    def delete_pod(self, pod: NodePod, failed: Callable[[Exception], None] | None = None) -> None:
        """Delete a pod for good, without grace: nothing of it runs any more."""
        body = {"gracePeriodSeconds": 0, "preconditions": {"uid": pod.uid}}
        request = Request("DELETE", PODS.path(pod.namespace, pod.name), msgspec.json.encode(body))
        self._put(pod.uid, PendingWrite(request, failed=failed))

    def patch_node(self, name: str, body: Content, subresource: str = "") -> None:
        request = Request("PATCH", NODES.path("", name, subresource), msgspec.json.encode(body), STRATEGIC)
        self._put(f"node {name}", PendingWrite(request))

    def patch_pod(self, pod: NodePod, body: Content) -> None:
        """Patch the metadata of a pod."""
        body = {**body, "metadata": {**body["metadata"], "uid": pod.uid}}
        path = PODS.path(pod.namespace, pod.name)
        self._put(
            f"metadata of {pod.uid}", PendingWrite(Request("PATCH", path, msgspec.json.encode(body), MERGE))
        )

    def apply(self, resource: Resource, content: Content) -> None:
        """Create an object that belongs to nodes, or bring it up to date."""
        name = content["metadata"]["name"]
        path = resource.path("", name)
        query = f"?fieldManager={node_annotations.AGENT}&force=true"
        self._put(path, PendingWrite(Request("PATCH", path + query, msgspec.json.encode(content), APPLY)))

    def delete(self, resource: Resource, name: str) -> None:
        """Delete an object that belonged to nodes."""
        path = resource.path("", name)
        self._put(path, PendingWrite(Request("DELETE", path)))

    def renew_lease(self, lease: Content) -> None:
        """Renew the lease of a node, or create it."""
        meta, body = lease["metadata"], msgspec.json.encode(lease)
        create = Request("POST", LEASES.path(meta["namespace"]), body)
        renew = Request("PATCH", LEASES.path(meta["namespace"], meta["name"]), body, MERGE)

        def failed(error: Exception) -> None:
            if isinstance(error, ApiError) and error.status == 404:
                self._put(f"lease {meta['name']}", PendingWrite(create))

        self._put(f"lease {meta['name']}", PendingWrite(renew, failed=failed))

    def record_event(self, pod: NodePod, type: str, reason: str, message: str) -> None:
        regarding = ObjectReference("Pod", pod.namespace, pod.name, pod.uid)
        self._put_event(pod.uid, PendingEvent(regarding, type, reason, message))

    def record_node_event(self, name: str, type: str, reason: str, message: str) -> None:
        regarding = ObjectReference("Node", "", name, name)
        self._put_event(f"node {name}", PendingEvent(regarding, type, reason, message))

    def _put_event(self, key: str, event: PendingEvent) -> None:
        def failed(error: Exception) -> None:
            if self._events.failed(event, error):
                self._put_event(key, event)

        with self._guard("events of nodes"):
            request = self._events.request(event)
            if request is not None:
                self._put(f"event of {key}", PendingWrite(request, failed=failed))

    def _put(self, key: str, write: PendingWrite) -> None:
        self.queue.put(key, write, 0)

    async def _send(self, write: PendingWrite) -> float | None:
        try:
            await self._client.send(write.request, TIMEOUT)
        except (ApiError, NoResponse) as error:
            write.failures += 1
            if _is_retried(error) and write.failures < ATTEMPTS:
                return self._backoff.pause(write.failures, getattr(error, "retry_after", None))
            if not isinstance(error, ApiError) or error.status not in (404, 409):  # the pod is gone
                log.warning("%s %s: %s", write.request.method, write.request.path, error)
            if write.failed is not None:
                write.failed(error)
        return None


def _newest(earlier: PendingWrite, later: PendingWrite) -> PendingWrite | None:
    """Of two pending statuses the later; a deletion waits its turn."""
    replaced = earlier.replaceable and later.replaceable and earlier.request.path == later.request.path
    return later if replaced else None


def _is_retried(error: Exception) -> bool:
    """A conflict is not transient here: it means that the pod is not the same any more."""
    return is_transient(error) and not (isinstance(error, ApiError) and error.status == 409)
