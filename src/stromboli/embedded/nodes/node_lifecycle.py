"""What a cluster does about a node that died: marks it and its pods, keeps others away, and evicts what will not wait.

Kubernetes leaves pods of a dead node Terminating until somebody is sure that the machine is off. Here a node fails
because somebody said so (the annotation `stromboli.sh/failed`), so its pods are gone for sure: they fail and go.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Iterable

from stromboli.api import names
from stromboli.embedded.nodes import node_annotations, pod_status_patches
from stromboli.embedded.nodes.node_types import Content, NodePod, NodeView
from stromboli.embedded.nodes.timer_heap import TimerHeap
from stromboli.embedded.nodes.write_queue import WriteQueue
from stromboli.kube.timestamps import timestamp

_SILENT = "Kubelet stopped posting node status."


class NodeLifecycle:
    """Writes what the death and the return of nodes mean for everybody else."""

    def __init__(self, writes: WriteQueue, clock: Callable[[], float] = time.time) -> None:
        self._writes = writes
        self._clock = clock
        self._doomed: dict[str, tuple[NodePod, str]] = {}
        self._timers = TimerHeap(self._evict, clock)

    def fail(self, node: NodeView, pods: Iterable[NodePod]) -> None:
        """A node died with these pods on it."""
        now = self._clock()
        if ready_status(node) != "Unknown":
            self._writes.node(node.name, {"status": {"conditions": [_unknown(now)]}}, "status")
            self._writes.tell_node(
                node.name, names.NORMAL, "NodeNotReady", f"Node {node.name} status is now: NodeNotReady"
            )
        if not is_unreachable(node):
            taints = [
                {"key": node_annotations.UNREACHABLE, "effect": effect, "timeAdded": timestamp(now)}
                for effect in _EFFECTS
            ]
            self._writes.node(node.name, {"spec": {"taints": [*(node.spec.taints or ()), *taints]}})
        for pod in pods:
            self.doom(pod, node.name)

    def doom(self, pod: NodePod, node: str) -> None:
        """A pod is on a dead node: it goes, at once or as late as it tolerates."""
        if pod.uid in self._doomed:
            return
        patience = 0.0 if pod.leaving or pod.finished else _patience(pod)
        if pod.finished and not pod.leaving:
            return
        self._writes.status(pod, pod_status_patches.unready(self._clock()))
        if patience is not None:
            self._doomed[pod.uid] = pod, node
            self._timers.set(pod.uid, self._clock() + patience)

    def spare(self, uid: str) -> None:
        """A pod is gone, or its node came back in time."""
        self._doomed.pop(uid, None)
        self._timers.cancel(uid)

    def recover(self, node: NodeView) -> None:
        """Take away what keeps others from a node."""
        if is_unreachable(node):
            left = [
                taint for taint in node.spec.taints or () if taint.get("key") != node_annotations.UNREACHABLE
            ]
            self._writes.node(node.name, {"spec": {"taints": left or None}})

    def orphans(self, pods: Iterable[NodePod]) -> None:
        """The node of these pods was deleted, so they go too."""
        for pod in pods:
            self._writes.let_go(pod)

    def close(self) -> None:
        self._timers.clear()

    def _evict(self, uid: Hashable) -> None:
        found = self._doomed.pop(str(uid), None)
        if found is None:
            return
        pod, node = found
        if not pod.finished:
            self._writes.tell(
                pod, names.NORMAL, "TaintManagerEviction", f"Marking for deletion Pod {pod.key}"
            )
            self._writes.status(pod, pod_status_patches.lost(pod, self._clock(), node))
        self._writes.let_go(pod)


_EFFECTS = (names.NO_SCHEDULE, names.NO_EXECUTE)


def _patience(pod: NodePod) -> float | None:
    """Seconds that a pod stays on a node which is unreachable; none for ever."""
    matching = [
        toleration
        for toleration in pod.spec.tolerations or ()
        if toleration.effect in ("", names.NO_EXECUTE)
        and (
            toleration.key == node_annotations.UNREACHABLE
            or (not toleration.key and toleration.operator == "Exists")
        )
        and (toleration.operator == "Exists" or not toleration.value)
    ]
    if not matching:
        return 0.0
    waits = [
        toleration.toleration_seconds for toleration in matching if toleration.toleration_seconds is not None
    ]
    return float(max(0, min(waits))) if waits else None


def is_unreachable(node: NodeView) -> bool:
    return any(taint.get("key") == node_annotations.UNREACHABLE for taint in node.spec.taints or ())


def ready_status(node: NodeView) -> str:
    """What its Ready condition says; empty if it never said anything."""
    return next(
        (
            condition.status
            for condition in node.status.conditions or ()
            if condition.type == names.CONDITION_READY
        ),
        "",
    )


def _unknown(now: float) -> Content:
    stamp = timestamp(now)
    times = {"lastHeartbeatTime": stamp, "lastTransitionTime": stamp}
    return {"type": "Ready", "status": "Unknown", "reason": "NodeStatusUnknown", "message": _SILENT, **times}
