"""What a ReplicaSet or ReplicationController does: pods to create and to delete, and its status."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import NamedTuple

from stromboli.api.pods import is_available, is_ready
from stromboli.api.types.controlled_pod import Pod
from stromboli.controllers.workloads.replicaset.pod_ranks import pods_to_delete
from stromboli.controllers.workloads.workload import desired_pods, template_part
from stromboli.controllers.workloads.workload_kinds import (
    ReplicaSet,
    ReplicaSetStatus,
    ReplicationController,
    WorkloadCondition,
)

Owner = ReplicaSet | ReplicationController
BURST = 500
"""Pods that a sync creates or deletes at most."""
REPLICA_FAILURE = "ReplicaFailure"


class Scale(NamedTuple):
    """Pods to create and to delete; one of both is empty."""

    create: int
    delete: list[Pod]


def scale(owner: Owner, active: Sequence[Pod], related: Callable[[], Sequence[Pod]], now: float) -> Scale:
    """What brings the number of active pods to the desired one; `related` are looked for if some have to go."""
    missing = desired_pods(owner) - len(active)
    if owner.metadata.deletion_timestamp is not None or not missing:
        return Scale(0, [])
    if missing > 0:
        return Scale(min(missing, BURST), [])
    return Scale(0, pods_to_delete(active, related(), min(-missing, BURST), now))


def status(
    owner: Owner,
    active: Sequence[Pod],
    terminating: Sequence[Pod] | None,
    error: Exception | None,
    now: float,
) -> ReplicaSetStatus:
    """The status for the pods as they were before the scaling, and for its error."""
    template = template_part(owner.spec.template, "metadata", "spec.template")
    labels = template_part(template, "labels", "spec.template.metadata").items()
    ready = [pod for pod in active if is_ready(pod)]
    wait = owner.spec.min_ready_seconds
    available = [pod for pod in ready if is_available(pod, wait, now)] if wait else ready
    return ReplicaSetStatus(
        replicas=len(active),
        fully_labeled_replicas=sum([labels <= pod.metadata.labels.items() for pod in active]),
        ready_replicas=len(ready),
        available_replicas=len(available),
        terminating_replicas=None if terminating is None else len(terminating),
        observed_generation=owner.metadata.generation,
        conditions=_conditions(owner, len(active), error, now),
    )


def _conditions(
    owner: Owner, active: int, error: Exception | None, now: float
) -> tuple[WorkloadCondition, ...]:
    """A failure stays as it was first told until a scaling succeeds."""
    before = owner.status.conditions
    if error is None:
        return tuple(condition for condition in before if condition.type != REPLICA_FAILURE)
    if any(condition.type == REPLICA_FAILURE for condition in before):
        return before
    failure = WorkloadCondition(
        type=REPLICA_FAILURE,
        status="True",
        reason="FailedCreate" if active < desired_pods(owner) else "FailedDelete",
        message=str(error),
        last_transition_time=datetime.fromtimestamp(int(now), UTC),
    )
    return (*before, failure)
