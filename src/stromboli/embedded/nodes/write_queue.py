"""What nodes write: one write per object at a time, of statuses the newest alone, repeated until it arrives."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass

import msgspec

from stromboli.embedded.nodes import node_annotations
from stromboli.embedded.nodes.node_types import Content, NodePod
from stromboli.embedded.nodes.pod_status_patches import patch
from stromboli.kube.api_resources import Resource
from stromboli.kube.event_recorder import EventRecorder, ObjectReference, PendingEvent
from stromboli.kube.keyed_queue import KeyedQueue
from stromboli.kube.rate_limits import Backoff
from stromboli.kube.request import STRATEGIC, Api, ApiError, NoResponse, Request, is_transient

log = logging.getLogger(__name__)

PODS = Resource("", "v1", "pods", "Pod")
NODES = Resource("", "v1", "nodes", "Node", namespaced=False)
WIDTH = 16
TIMEOUT = 15.0
ATTEMPTS = 8


@dataclass(slots=True)
class PendingWrite:
    """One request, and whom to tell if it comes to nothing."""

    request: Request
    replaceable: bool = False
    """A later one of its kind says everything that this one says."""
    failed: Callable[[Exception], None] | None = None
    failures: int = 0


class WriteQueue:
    """A queue of writes by object."""

    def __init__(self, client: Api, clock: Callable[[], float] = time.time) -> None:
        self._client = client
        self._clock = clock
        self._events = EventRecorder(node_annotations.AGENT, node_annotations.AGENT, clock)
        self._backoff = Backoff(first=0.1, longest=5.0)
        self._queue: KeyedQueue[PendingWrite] = KeyedQueue(self._send, WIDTH, _newest)

    def __len__(self) -> int:
        return len(self._queue)

    def start(self) -> None:
        self._queue.start()

    async def idle(self) -> None:
        await self._queue.idle()

    async def stop(self) -> None:
        await self._queue.stop()

    def status(
        self, pod: NodePod, status: Content, failed: Callable[[Exception], None] | None = None
    ) -> None:
        """Tell what became of a pod; a merge by condition and container, so that others' words stay."""
        path = PODS.path(pod.namespace, pod.name, "status")
        body = msgspec.json.encode(patch(status, pod.uid))
        self._put(pod.uid, PendingWrite(Request("PATCH", path, body, STRATEGIC), True, failed))

    def let_go(self, pod: NodePod, failed: Callable[[Exception], None] | None = None) -> None:
        """Take a pod away for good: it has left its node."""
        body = {"gracePeriodSeconds": 0, "preconditions": {"uid": pod.uid}}
        request = Request("DELETE", PODS.path(pod.namespace, pod.name), msgspec.json.encode(body))
        self._put(pod.uid, PendingWrite(request, failed=failed))

    def node(self, name: str, body: Content, part: str = "") -> None:
        request = Request("PATCH", NODES.path("", name, part), msgspec.json.encode(body), STRATEGIC)
        self._put(f"node {name}", PendingWrite(request))

    def tell(self, pod: NodePod, type: str, reason: str, message: str) -> None:
        """An event about a pod."""
        self._say(
            pod.uid,
            PendingEvent(ObjectReference("Pod", pod.namespace, pod.name, pod.uid), type, reason, message),
        )

    def tell_node(self, name: str, type: str, reason: str, message: str) -> None:
        self._say(
            f"node {name}", PendingEvent(ObjectReference("Node", "", name, name), type, reason, message)
        )

    def _say(self, key: str, saying: PendingEvent) -> None:
        request = self._events.request(saying)
        if request is not None:
            self._put(
                f"event of {key}", PendingWrite(request, failed=lambda error: self._unsaid(saying, error))
            )

    def _unsaid(self, saying: PendingEvent, error: Exception) -> None:
        self._events.failed(saying, error)

    def _put(self, key: str, write: PendingWrite) -> None:
        self._queue.put(key, write, 0)

    async def _send(self, write: PendingWrite) -> float | None:
        try:
            await self._client.send(write.request, TIMEOUT)
        except (ApiError, NoResponse) as error:
            write.failures += 1
            if _passing(error) and write.failures < ATTEMPTS:
                return self._backoff.pause(write.failures, getattr(error, "retry_after", None))
            if not _gone(error):
                log.warning("%s %s: %s", write.request.method, write.request.path, error)
            if write.failed is not None:
                write.failed(error)
        return None


def _newest(earlier: PendingWrite, later: PendingWrite) -> PendingWrite | None:
    """Of two statuses that wait, the later; what takes a pod away waits its turn."""
    both = earlier.replaceable and later.replaceable and earlier.request.path == later.request.path
    return later if both else None


def _passing(error: Exception) -> bool:
    """A conflict does not pass: it means that this is not the same pod any more."""
    return is_transient(error) and not (isinstance(error, ApiError) and error.status == 409)


def _gone(error: Exception) -> bool:
    return isinstance(error, ApiError) and error.status in (404, 409)
