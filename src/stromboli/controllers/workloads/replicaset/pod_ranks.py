"""Which pods a ReplicaSet deletes first when it has too many, as Kubernetes ranks them."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from stromboli.api.pods import PHASE_RANKS, is_active, ready_condition
from stromboli.api.types.controlled_pod import Pod
from stromboli.api.types.meta import Time

DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"


def pods_to_delete(pods: Sequence[Pod], related: Iterable[Pod], count: int, now: float) -> list[Pod]:
    """The first `count` of the pods; `related` are those of all ReplicaSets of the same owner.

    Pods without a node come first, then those in an early phase, those that are not ready, of low deletion cost, with
    many others on their node, ready for a short time, with many restarts, and young ones. Times are compared by their
    order of magnitude, so that which of two old pods goes does not depend on seconds.
    """
    if count >= len(pods):
        return list(pods)
    on_node = Counter(pod.spec.node_name for pod in related if is_active(pod))
    return sorted(pods, key=lambda pod: _rank(pod, on_node[pod.spec.node_name], now))[:count]


def _rank(pod: Pod, doubled: int, now: float) -> tuple[Any, ...]:
    ready = ready_condition(pod)
    return (
        bool(pod.spec.node_name),
        PHASE_RANKS.get(pod.status.phase, 0),
        ready is not None,
        deletion_cost(pod),
        -doubled,
        _magnitude(ready.last_transition_time, now) if ready is not None else 0,
        _negative_restarts(pod),
        _magnitude(pod.metadata.creation_timestamp, now),
        pod.metadata.uid,
    )


def deletion_cost(pod: Pod) -> int:
    """What the pod's annotation says, 0 if it is no whole number of 32 bits."""
    text = pod.metadata.annotations.get(DELETION_COST)
    if not text:
        return 0
    digits = text.removeprefix("-")
    if (
        not digits.isascii()
        or not digits.isdecimal()
        or (digits[0] == "0" and len(text) > 1)
        or len(digits) > 10
    ):
        return 0
    cost = int(text)
    return cost if -(2**31) <= cost < 2**31 else 0


def _negative_restarts(pod: Pod) -> int:
    statuses = (*pod.status.container_statuses, *pod.status.init_container_statuses)
    return -max([status.restart_count for status in statuses], default=0)


def _magnitude(since: Time | None, now: float) -> int:
    """The logarithm of an age; an unknown time comes first."""
    if since is None:
        return -1
    age = now - since.timestamp()
    return int(math.log2(age * 1e9)) if age > 0 else 0
