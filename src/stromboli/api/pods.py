"""Facts about pods by their phase, their conditions and their deletion, for any struct of a pod."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any, Protocol

from stromboli.api import names
from stromboli.api.types.meta import Condition

PHASES = (names.POD_PENDING, names.POD_RUNNING, names.POD_SUCCEEDED, names.POD_FAILED)
"""The phases that kubelets write; any other means Unknown."""
FINISHED = (names.POD_SUCCEEDED, names.POD_FAILED)
"""The phases of pods whose containers have all terminated and are not restarted."""
PHASE_RANKS = {names.POD_PENDING: 0, names.POD_UNKNOWN: 1, names.POD_RUNNING: 2}
"""The phases of unfinished pods in the order in which controllers delete surplus pods."""


class Status(Protocol):
    """The part of a status that these functions read."""

    @property
    def phase(self) -> str: ...
    @property
    def conditions(self) -> Iterable[Any] | None: ...


class Pod(Protocol):
    """The part of a pod that these functions read."""

    @property
    def metadata(self) -> Any: ...
    @property
    def spec(self) -> Any: ...
    @property
    def status(self) -> Status: ...


def is_finished(pod: Pod) -> bool:
    return pod.status.phase in FINISHED


def is_active(pod: Pod) -> bool:
    """Whether a pod has neither finished nor is being deleted."""
    return not is_finished(pod) and pod.metadata.deletion_timestamp is None


def is_terminating(pod: Pod) -> bool:
    """Whether a pod is being deleted and has not finished."""
    return not is_finished(pod) and pod.metadata.deletion_timestamp is not None


def ready_condition(pod: Pod) -> Condition | None:
    """The condition Ready if it is true."""
    conditions: Iterable[Condition] = pod.status.conditions or ()
    ready = next((each for each in conditions if each.type == names.CONDITION_READY), None)
    return ready if ready is not None and ready.status == "True" else None


def is_ready(pod: Pod) -> bool:
    return ready_condition(pod) is not None


def available_in(pod: Pod, min_ready_seconds: int, now: float) -> float | None:
    """Seconds until a ready pod is available, 0 if it is; None if it is not ready or since when is unknown."""
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


def is_placed_elsewhere(pod: Pod) -> bool:
    """Whether a pod with the name of Kubernetes' own scheduler was bound by that scheduler, a kubelet or a user.

    Where that name is one of ours, our scheduler binds such pods too, but only with a group.
    """
    spec = pod.spec
    return (
        spec.scheduler_name == names.OTHER_SCHEDULER_NAME
        and bool(spec.node_name)
        and spec.scheduling_group is None
        and not pod.metadata.annotations.get(names.GROUP_NAME)
    )
