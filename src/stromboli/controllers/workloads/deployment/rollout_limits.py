"""How many pods a Deployment may have and must have while it rolls out, and where its ReplicaSets note that."""

from __future__ import annotations

from collections.abc import Iterable

from stromboli.api.int_or_percent import scaled_value
from stromboli.controllers.workloads.workload import desired_pods
from stromboli.controllers.workloads.workload_kinds import Deployment, ReplicaSet, RollingUpdate
from stromboli.controllers.workloads.workload_pods import DESIRED_REPLICAS, NOTED_LIMIT

ROLLING_UPDATE, RECREATE = "RollingUpdate", "Recreate"


def size(replica_set: ReplicaSet) -> int:
    """How many pods a ReplicaSet is to have."""
    return desired_pods(replica_set)


def total_size(replica_sets: Iterable[ReplicaSet]) -> int:
    return sum(map(size, replica_sets))


def max_surge(deployment: Deployment) -> int:
    """Pods beyond the desired ones."""
    return _fenceposts(deployment)[0]


def max_unavailable(deployment: Deployment) -> int:
    """Pods of the desired ones that may be unavailable."""
    return min(_fenceposts(deployment)[1], desired_pods(deployment))


def most_pods(deployment: Deployment) -> int:
    return desired_pods(deployment) + max_surge(deployment)


def least_available(deployment: Deployment) -> int:
    return desired_pods(deployment) - max_unavailable(deployment)


def _fenceposts(deployment: Deployment) -> tuple[int, int]:
    """Surge is rounded up and unavailability down; if both are none, one pod may be unavailable."""
    strategy, desired = deployment.spec.strategy, desired_pods(deployment)
    if strategy.type != ROLLING_UPDATE:
        return 0, 0
    limits = strategy.rolling_update or RollingUpdate()
    surge = scaled_value(limits.max_surge, desired, round_up=True)
    unavailable = scaled_value(limits.max_unavailable, desired, round_up=False)
    return (0, 1) if not surge and not unavailable else (surge, unavailable)


def size_annotations(deployment: Deployment) -> dict[str, str]:
    """What a ReplicaSet notes of the Deployment's size, so that scaling can be told from a rollout."""
    return {
        DESIRED_REPLICAS: str(desired_pods(deployment)),
        NOTED_LIMIT: str(most_pods(deployment)),
    }


def noted_number(replica_set: ReplicaSet, annotation: str) -> int | None:
    """A size that was noted; None if there is none, or no number of 32 bits."""
    text = replica_set.metadata.annotations.get(annotation, "")
    if not text.isascii() or not text.isdecimal() or len(text) > 10:
        return None
    return int(text) if int(text) < 2**31 else None
