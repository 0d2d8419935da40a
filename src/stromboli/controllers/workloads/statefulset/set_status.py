"""The status of a StatefulSet, and the revisions that it tells of."""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from stromboli.api import names
from stromboli.api.pods import is_available, is_ready
from stromboli.api.types.controlled_pod import Pod
from stromboli.controllers.workloads.statefulset.stateful_set import StatefulSet, StatefulSetStatus
from stromboli.controllers.workloads.workload import Manifest
from stromboli.controllers.workloads.workload_pods import REVISION


class Revision(NamedTuple):
    """The name and the template of a ControllerRevision."""

    name: str
    template: Manifest


class Revisions(NamedTuple):
    """What pods before the partition have, and what the others are to have."""

    current: Revision
    update: Revision
    collisions: int = 0


def set_status(
    stateful_set: StatefulSet, revisions: Revisions, pods: Collection[Pod], replaced: int, now: float
) -> StatefulSetStatus:
    """Of the pods as they were before the actions, by which so many are replaced.

    An update is complete when all pods have its revision and are ready.
    """
    current, update, collisions = revisions
    wait = stateful_set.spec.min_ready_seconds
    ready = [pod for pod in pods if pod.status.phase == names.POD_RUNNING and is_ready(pod)]
    staying = [revision_of(pod) for pod in pods if pod.metadata.deletion_timestamp is None]
    status = StatefulSetStatus(
        observed_generation=stateful_set.metadata.generation,
        replicas=len(pods),
        ready_replicas=len(ready),
        available_replicas=sum(is_available(pod, wait, now) for pod in ready),
        current_replicas=max(0, staying.count(current.name) - replaced),
        updated_replicas=staying.count(update.name),
        current_revision=current.name,
        update_revision=update.name,
        collision_count=collisions,
    )
    counts = {status.updated_replicas, status.ready_replicas, status.replicas}
    if counts == {stateful_set.replicas} and stateful_set.rolling_update is not None:
        status.current_replicas, status.current_revision = status.updated_replicas, update.name
    return status


def revision_of(pod: Pod) -> str:
    """The name of the revision that a pod has."""
    return pod.metadata.labels.get(REVISION, "")
