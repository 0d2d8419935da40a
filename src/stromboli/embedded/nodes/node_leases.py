"""Leases of nodes in `kube-node-lease`, as kubelets renew them, but seldom: they tell nothing that is not certain here.

Nodes live and fail with this process or by an annotation. So a lease is renewed every few minutes, for tools that look
at it, and of thousands of nodes a lease every few seconds.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable

from stromboli.api.go_scalars import micro_time
from stromboli.embedded.nodes.node_types import Content, NodeView
from stromboli.embedded.nodes.timer_heap import TimerHeap
from stromboli.embedded.nodes.write_queue import NODES, WriteQueue

NAMESPACE = "kube-node-lease"
INTERVAL = 300.0
"""Seconds between two renewals of a lease."""
PACE = 4.0
"""Seconds between two renewals of all leases together, on average; where there are many, their intervals grow."""
START_PACE = 0.05
"""Seconds between two leases when nodes are new, or the service starts."""
PERIODS = 4
"""Intervals for which a lease holds, as a kubelet's does."""


class NodeLeases:
    """Renews the leases of nodes that are ready."""

    def __init__(self, writes: WriteQueue, clock: Callable[[], float] = time.time) -> None:
        self._writes = writes
        self._clock = clock
        self._uids: dict[str, str] = {}
        """Of nodes, by name."""
        self._next_start = 0.0
        self._timers = TimerHeap(self._renew, clock)

    def put(self, node: NodeView) -> None:
        """A node is ready; its lease is renewed soon if it was not until now."""
        if self._uids.get(node.name) != node.metadata.uid:
            self._uids[node.name] = node.metadata.uid
            self._next_start = max(self._clock(), self._next_start + START_PACE)
            self._timers.set(node.name, self._next_start)

    def drop(self, name: str) -> None:
        """The node has failed or is gone; a lease goes with the node that owns it."""
        self._uids.pop(name, None)
        self._timers.cancel(name)

    def close(self) -> None:
        self._timers.clear()

    def _renew(self, name: str) -> None:
        now, interval = self._clock(), max(INTERVAL, PACE * len(self._uids))
        self._writes.renew_lease(self._lease(name, now, interval))
        self._timers.set(name, now + interval * random.Random(f"{name} {now}").uniform(0.75, 1.25))

    def _lease(self, name: str, now: float, interval: float) -> Content:
        owner = {"apiVersion": "v1", "kind": NODES.kind, "name": name, "uid": self._uids[name]}
        return {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {"name": name, "namespace": NAMESPACE, "ownerReferences": [owner]},
            "spec": {
                "holderIdentity": name,
                "leaseDurationSeconds": round(PERIODS * interval),
                "renewTime": micro_time(now),
            },
        }
