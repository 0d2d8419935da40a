"""How much of each node's CPU and memory pods request, kept up with every change of a pod (spec 06 11.2)."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from stromboli.api import names
from stromboli.api.pods import is_finished
from stromboli.api.resources.quantity import QuantityError, milli, whole
from stromboli.api.types.meta import Quantity
from stromboli.controllers.watched_kinds import Node, PlacedPod


class Utilization(NamedTuple):
    """Shares of a node's capacity, from 0 to 1."""

    cpu: float
    memory: float

    def is_far_from(self, other: Utilization, distance: float) -> bool:
        return max(abs(self.cpu - other.cpu), abs(self.memory - other.memory)) > distance


class _Requests(NamedTuple):
    pods: int
    cpu: int
    memory: int

    def plus(self, other: _Requests) -> _Requests:
        return _Requests(*map(int.__add__, self, other))

    def minus(self, other: _Requests) -> _Requests:
        return _Requests(*map(int.__sub__, self, other))


_NOTHING = _Requests(0, 0, 0)


class NodeUtilization:
    """Sums of what pods request, by node. Whole numbers, so they cannot drift."""

    def __init__(self) -> None:
        self._requests: dict[str, _Requests] = {}

    def pod_changed(self, before: PlacedPod | None, now: PlacedPod | None) -> set[str]:
        """The nodes whose sums changed."""
        old, new = _placement(before), _placement(now)
        if old == new:
            return set()
        if old is not None:
            node, requests = old
            left = self._requests[node].minus(requests)
            self._requests[node] = left
            if not left.pods:
                del self._requests[node]
        if new is not None:
            node, requests = new
            self._requests[node] = self._requests.get(node, _NOTHING).plus(requests)
        return {placement[0] for placement in (old, new) if placement is not None}

    def of(self, node: Node) -> Utilization:
        _, cpu, memory = self._requests.get(node.name, _NOTHING)
        capacity = node.status.capacity
        return Utilization(
            _share(cpu, _amount(milli, capacity.get(names.CPU, 0))),
            _share(memory, _amount(whole, capacity.get(names.MEMORY, 0))),
        )


def _placement(pod: PlacedPod | None) -> tuple[str, _Requests] | None:
    """The node of a pod and what its containers request there; None if it takes nothing."""
    if pod is None or not pod.spec.node_name or is_finished(pod) or pod.is_mirror:
        return None
    cpu = memory = 0
    for container in pod.spec.containers:
        requests = container.resources.requests
        cpu += _amount(milli, requests.get(names.CPU, 0))
        memory += _amount(whole, requests.get(names.MEMORY, 0))
    return pod.spec.node_name, _Requests(1, cpu, memory)


def _amount(read: Callable[[Quantity], int], quantity: Quantity) -> int:
    """What no API server lets in counts for nothing."""
    try:
        return max(0, read(quantity))
    except QuantityError:
        return 0


def _share(amount: int, capacity: int) -> float:
    if not capacity:
        return 0.0
    return amount / capacity if amount < capacity else 1.0
