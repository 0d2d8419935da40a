"""Whether a pod counts: active, ready, and available once it was ready for a while."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from stromboli.api.types.meta import Condition
from stromboli.controllers.workloads.workload_kinds import Pod

ENDED = ("Succeeded", "Failed")


def is_active(pod: Pod) -> bool:
    """Whether a pod runs or is going to: it has not ended and is not being deleted."""
    return pod.status.phase not in ENDED and pod.metadata.deletion_timestamp is None


def is_terminating(pod: Pod) -> bool:
    """Whether a pod is being deleted and has not ended yet."""
    return pod.status.phase not in ENDED and pod.metadata.deletion_timestamp is not None


def ready_condition(pod: Pod) -> Condition | None:
    """The condition Ready if it is true."""
    for condition in pod.status.conditions:
        if condition.type == "Ready":
            return condition if condition.status == "True" else None
    return None


def is_ready(pod: Pod) -> bool:
    return ready_condition(pod) is not None


def available_in(pod: Pod, min_ready_seconds: int, now: float) -> float | None:
    """Seconds until a ready pod is available, 0 if it is; None if it is not ready, or not known since when."""
    condition = ready_condition(pod)
    if condition is None:
        return None
    if not min_ready_seconds:
        return 0.0
    since: datetime | None = condition.last_transition_time
    return None if since is None else max(0.0, since.timestamp() + min_ready_seconds - now)


def is_available(pod: Pod, min_ready_seconds: int, now: float) -> bool:
    return available_in(pod, min_ready_seconds, now) == 0.0


def next_available(pods: Iterable[Pod], min_ready_seconds: int, now: float) -> float | None:
    """Seconds until the next of the ready pods becomes available; None if none is waited for."""
    waits = (available_in(pod, min_ready_seconds, now) for pod in pods) if min_ready_seconds else ()
    return min((wait for wait in waits if wait), default=None)
