"""The status of a Deployment: counts, and the conditions Available, Progressing and ReplicaFailure."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

import msgspec

from stromboli.controllers.workloads.deployment.revisions import Revisions
from stromboli.controllers.workloads.deployment.rollout_limits import least_available, total_size
from stromboli.controllers.workloads.replicaset.reconcile import REPLICA_FAILURE
from stromboli.controllers.workloads.workload import desired_pods
from stromboli.controllers.workloads.workload_kinds import (
    Deployment,
    DeploymentStatus,
    ReplicaSet,
    WorkloadCondition,
)

AVAILABLE, PROGRESSING = "Available", "Progressing"
TIMED_OUT, COMPLETE, PAUSED = "ProgressDeadlineExceeded", "NewReplicaSetAvailable", "DeploymentPaused"
NO_DEADLINE = 2**31 - 1
Conditions = tuple[WorkloadCondition, ...]


def condition(type: str, status: str, reason: str, message: str, now: float) -> WorkloadCondition:
    moment = datetime.fromtimestamp(int(now), UTC)
    return WorkloadCondition(
        type=type,
        status=status,
        reason=reason,
        message=message,
        last_update_time=moment,
        last_transition_time=moment,
    )


def find(conditions: Conditions, type: str) -> WorkloadCondition | None:
    return next((each for each in conditions if each.type == type), None)


def without(conditions: Conditions, type: str) -> Conditions:
    return tuple(each for each in conditions if each.type != type)


def with_condition(conditions: Conditions, new: WorkloadCondition) -> Conditions:
    """A condition with the same status and reason stays as it is; with the same status it keeps its transition."""
    before = find(conditions, new.type)
    if before is not None and before.status == new.status:
        if before.reason == new.reason:
            return conditions
        new = msgspec.structs.replace(new, last_transition_time=before.last_transition_time)
    return (*without(conditions, new.type), new)


def has_deadline(deployment: Deployment) -> bool:
    return deployment.spec.progress_deadline_seconds not in (None, NO_DEADLINE)


# -- counts


def counted(
    deployment: Deployment, revisions: Revisions, conditions: Conditions, now: float
) -> DeploymentStatus:
    """The counts, and whether enough pods are available."""
    sets = revisions.all
    available = sum(each.status.available_replicas for each in sets)
    if available >= least_available(deployment):
        reason, status, has = "MinimumReplicasAvailable", "True", "has"
    else:
        reason, status, has = "MinimumReplicasUnavailable", "False", "does not have"
    minimum = condition(AVAILABLE, status, reason, f"Deployment {has} minimum availability.", now)
    return DeploymentStatus(
        replicas=sum(each.status.replicas for each in sets),
        updated_replicas=revisions.new.status.replicas if revisions.new is not None else 0,
        ready_replicas=sum(each.status.ready_replicas for each in sets),
        available_replicas=available,
        unavailable_replicas=max(0, total_size(sets) - available),
        terminating_replicas=_terminating(sets),
        collision_count=deployment.status.collision_count,
        observed_generation=deployment.metadata.generation,
        conditions=with_condition(conditions, minimum),
    )


def _terminating(replica_sets: Sequence[ReplicaSet]) -> int | None:
    """None if a ReplicaSet does not count them."""
    seen = [each.status for each in replica_sets if each.status.observed_generation]
    numbers = [status.terminating_replicas for status in seen]
    return None if None in numbers else sum(number or 0 for number in numbers)


def is_complete(deployment: Deployment, status: DeploymentStatus) -> bool:
    """Whether all pods are of the present template and available, and no others are left."""
    counts = {status.updated_replicas, status.replicas, status.available_replicas}
    return (
        counts == {desired_pods(deployment)} and status.observed_generation >= deployment.metadata.generation
    )


# -- progress


def with_progress(
    deployment: Deployment, revisions: Revisions, status: DeploymentStatus, now: float
) -> DeploymentStatus:
    """The status of a rollout with its progress, and with the failures of its ReplicaSets."""
    conditions = status.conditions
    if not has_deadline(deployment):
        conditions = without(conditions, PROGRESSING)
    else:
        before = find(conditions, PROGRESSING)
        done = before is not None and before.reason == COMPLETE
        if not done or status.replicas != status.updated_replicas:
            conditions = _progress(deployment, revisions.new, status, now)
    failure = _failure(revisions)
    conditions = (
        without(conditions, REPLICA_FAILURE) if failure is None else with_condition(conditions, failure)
    )
    return msgspec.structs.replace(status, conditions=conditions)


def _progress(
    deployment: Deployment, new: ReplicaSet | None, status: DeploymentStatus, now: float
) -> Conditions:
    """The conditions with what the rollout does: it is complete, goes on, or is stuck for longer than the deadline."""
    conditions = status.conditions
    subject = f'ReplicaSet "{new.name}"' if new is not None else f'Deployment "{deployment.name}"'
    if is_complete(deployment, status):
        text = f"{subject} has successfully progressed."
        return with_condition(conditions, condition(PROGRESSING, "True", COMPLETE, text, now))
    before = find(conditions, PROGRESSING)
    if _has_progressed(deployment.status, status):
        text = f"{subject} is progressing."
        progress = condition(PROGRESSING, "True", "ReplicaSetUpdated", text, now)
        if before is not None and before.status == "True":
            progress = msgspec.structs.replace(progress, last_transition_time=before.last_transition_time)
        return (*without(conditions, PROGRESSING), progress)
    if before is not None and _is_late(deployment, before, now):
        text = f"{subject} has timed out progressing."
        return with_condition(conditions, condition(PROGRESSING, "False", TIMED_OUT, text, now))
    return conditions


def _has_progressed(before: DeploymentStatus, status: DeploymentStatus) -> bool:
    """Whether there are more new pods, fewer old ones, or more that are ready or available."""
    return (
        status.updated_replicas > before.updated_replicas
        or status.replicas - status.updated_replicas < before.replicas - before.updated_replicas
        or status.ready_replicas > before.ready_replicas
        or status.available_replicas > before.available_replicas
    )


def _is_late(deployment: Deployment, progress: WorkloadCondition, now: float) -> bool:
    if progress.reason == COMPLETE:
        return False
    left = _time_left(deployment, progress, now)
    return progress.reason == TIMED_OUT or (left is not None and left < 0)


def _time_left(deployment: Deployment, progress: WorkloadCondition, now: float) -> float | None:
    since, deadline = progress.last_update_time, deployment.spec.progress_deadline_seconds
    return None if since is None or deadline is None else since.timestamp() + deadline - now


def next_check(deployment: Deployment, status: DeploymentStatus, now: float) -> float | None:
    """Seconds until the rollout would be late; None if it is complete, late already, or has no deadline."""
    progress = find(status.conditions, PROGRESSING)
    if progress is None or not has_deadline(deployment) or progress.reason == TIMED_OUT:
        return None
    if is_complete(deployment, status):
        return None
    left = _time_left(deployment, progress, now)
    return None if left is None else max(0.0, left) + 1.0


def _failure(revisions: Revisions) -> WorkloadCondition | None:
    """A ReplicaSet's failure as the Deployment's, rather that of the new one."""
    ordered = [revisions.new, *revisions.old] if revisions.new is not None else revisions.old
    for replica_set in ordered:
        failure = find(replica_set.status.conditions, REPLICA_FAILURE)
        if failure is not None:
            return msgspec.structs.replace(failure, last_update_time=failure.last_transition_time)
    return None


# -- pause


def with_pause(deployment: Deployment, now: float) -> Conditions:
    """The conditions of a Deployment that may have been paused or resumed: its deadline starts again then."""
    conditions = deployment.status.conditions
    progress = find(conditions, PROGRESSING)
    if not has_deadline(deployment) or (progress is not None and progress.reason == TIMED_OUT):
        return conditions
    noted = progress is not None and progress.reason == PAUSED
    if deployment.spec.paused and not noted:
        paused = condition(PROGRESSING, "Unknown", PAUSED, "Deployment is paused", now)
        return with_condition(conditions, paused)
    if noted and not deployment.spec.paused:
        resumed = condition(PROGRESSING, "Unknown", "DeploymentResumed", "Deployment is resumed", now)
        return with_condition(conditions, resumed)
    return conditions
