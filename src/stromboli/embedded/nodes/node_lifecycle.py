"""Node lifecycle: a failed node is marked and tainted, and its pods are evicted when their tolerations end.

Kubernetes leaves pods of a failed node Terminating until it is certain that the machine is off. Here a node fails
because its annotation `stromboli.sh/failed` says so, so its pods fail and are deleted.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable

from stromboli.api import names
from stromboli.api.go_scalars import timestamp
from stromboli.api.types.pod import Toleration
from stromboli.embedded.nodes import pod_status_patches
from stromboli.embedded.nodes.node_annotations import UNREACHABLE
from stromboli.embedded.nodes.node_report import UNKNOWN, lost_conditions
from stromboli.embedded.nodes.node_types import NodePod, NodeView
from stromboli.embedded.nodes.timer_heap import TimerHeap
from stromboli.embedded.nodes.write_queue import WriteQueue


class NodeLifecycle:
    """Writes what follows from the failure and the return of nodes."""

    def __init__(self, writes: WriteQueue, clock: Callable[[], float] = time.time) -> None:
        self._writes = writes
        self._clock = clock
        self._evictions: dict[str, tuple[NodePod, str]] = {}
        self._timers = TimerHeap(self._evict, clock)

    def fail(self, node: NodeView, pods: Iterable[NodePod]) -> None:
        """A node failed with these pods on it."""
        now = self._clock()
        if ready_status(node) != UNKNOWN:
            conditions = lost_conditions(node, now)
            self._writes.patch_node(node.name, {"status": {"conditions": conditions}}, "status")
            message = f"Node {node.name} status is now: NodeNotReady"
            self._writes.record_node_event(node.name, names.NORMAL, "NodeNotReady", message)
        if not is_unreachable(node):
            taint = {"key": UNREACHABLE, "timeAdded": timestamp(now)}
            taints = [{**taint, "effect": effect} for effect in (names.NO_SCHEDULE, names.NO_EXECUTE)]
            self._writes.patch_node(node.name, {"spec": {"taints": [*(node.spec.taints or ()), *taints]}})
        for pod in pods:
            self.schedule_eviction(pod, node.name)

    def schedule_eviction(self, pod: NodePod, node: str) -> None:
        """Evict a pod of a failed node, at once or when its toleration ends."""
        if pod.uid in self._evictions:
            return
        delay = 0.0 if pod.terminating or pod.finished else _toleration_seconds(pod)
        if pod.finished and not pod.terminating:
            return
        self._writes.patch_status(pod, pod_status_patches.unready(self._clock()))
        if delay is not None:
            self._evictions[pod.uid] = pod, node
            self._timers.set(pod.uid, self._clock() + delay)

    def cancel_eviction(self, uid: str) -> None:
        """The pod is gone, or its node is back in time."""
        self._evictions.pop(uid, None)
        self._timers.cancel(uid)

    def recover(self, node: NodeView) -> None:
        """Remove the taints of a failure, and tell that it is over."""
        if ready_status(node) == UNKNOWN:
            message = f"Node {node.name} status is now: NodeReady"
            self._writes.record_node_event(node.name, names.NORMAL, "NodeReady", message)
        if is_unreachable(node):
            left = [taint for taint in node.spec.taints or () if taint.get("key") != UNREACHABLE]
            self._writes.patch_node(node.name, {"spec": {"taints": left or None}})

    def close(self) -> None:
        self._timers.clear()

    def _evict(self, uid: str) -> None:
        eviction = self._evictions.pop(uid, None)
        if eviction is None:
            return
        pod, node = eviction
        if not pod.finished:
            message = f"Marking for deletion Pod {pod.key}"
            self._writes.record_event(pod, names.NORMAL, "TaintManagerEviction", message)
            self._writes.patch_status(pod, pod_status_patches.node_lost(self._clock(), node))
        self._writes.delete_pod(pod)


def _toleration_seconds(pod: NodePod) -> float | None:
    """Seconds that a pod stays on an unreachable node; None for ever."""
    matching = [toleration for toleration in pod.spec.tolerations or () if _tolerates(toleration)]
    if not matching:
        return 0.0
    limits = [toleration.toleration_seconds for toleration in matching]
    seconds = [limit for limit in limits if limit is not None]
    return float(max(0, min(seconds))) if seconds else None


def _tolerates(toleration: Toleration) -> bool:
    exists = toleration.operator == "Exists"
    return (
        toleration.effect in ("", names.NO_EXECUTE)
        and (toleration.key == UNREACHABLE or (exists and not toleration.key))
        and (exists or not toleration.value)
    )


def is_unreachable(node: NodeView) -> bool:
    return any(taint.get("key") == UNREACHABLE for taint in node.spec.taints or ())


def ready_status(node: NodeView) -> str:
    """The status of its Ready condition; empty without one."""
    conditions = {condition.type: condition.status for condition in node.status.conditions or ()}
    return conditions.get(names.CONDITION_READY, "")
