"""What a Deployment does next: ReplicaSets to create, scale and delete, its revision and its status.

Each step is small, as in Kubernetes, and what it writes brings the next one about.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import msgspec

from stromboli.controllers.workloads.deployment.revisions import (
    Revisions,
    new_annotations,
    next_revision,
    oldest_revisions,
    revisions_of,
)
from stromboli.controllers.workloads.deployment.rollout_limits import (
    RECREATE,
    size,
    size_annotations,
)
from stromboli.controllers.workloads.deployment.rollout_scaling import (
    Sizes,
    active,
    is_scaling,
    new_size,
    old_sizes,
    scaled_sizes,
)
from stromboli.controllers.workloads.deployment.rollout_status import (
    PROGRESSING,
    condition,
    counted,
    find,
    has_deadline,
    is_complete,
    next_check,
    with_condition,
    with_pause,
    with_progress,
)
from stromboli.controllers.workloads.workload import Manifest
from stromboli.controllers.workloads.workload_kinds import Deployment, DeploymentStatus, ReplicaSet
from stromboli.controllers.workloads.workload_pods import REVISION_ANNOTATION, replica_set_of

KEEP_ALL = 2**31 - 1


class Update(NamedTuple):
    """A ReplicaSet that changes."""

    replica_set: ReplicaSet
    size: int
    annotations: dict[str, str]
    min_ready_seconds: int

    @property
    def changes(self) -> bool:
        present = self.replica_set
        return (
            self.size != size(present)
            or self.min_ready_seconds != present.spec.min_ready_seconds
            or any(present.metadata.annotations.get(key) != text for key, text in self.annotations.items())
        )


class Outcome(NamedTuple):
    """One step of a Deployment."""

    status: DeploymentStatus
    revision: str = ""
    """That of the new ReplicaSet, which the Deployment notes."""
    updates: tuple[Update, ...] = ()
    create: Manifest | None = None
    delete: tuple[ReplicaSet, ...] = ()
    requeue_after: float | None = None


def reconcile(
    deployment: Deployment, replica_sets: Iterable[ReplicaSet], old_pods: bool, now: float
) -> Outcome:
    """`old_pods`: whether pods of old ReplicaSets exist that have not ended; a Recreate waits for them."""
    revisions = revisions_of(deployment, replica_sets)
    conditions = with_pause(deployment, now)
    if deployment.metadata.deletion_timestamp is not None:
        return Outcome(counted(deployment, revisions, conditions, now))
    if revisions.new is not None and has_deadline(deployment) and find(conditions, PROGRESSING) is None:
        text = f'Found new replica set "{revisions.new.name}"'
        found = condition(PROGRESSING, "True", "FoundNewReplicaSet", text, now)
        conditions = with_condition(conditions, found)
    deployment = msgspec.structs.replace(
        deployment, status=msgspec.structs.replace(deployment.status, conditions=conditions)
    )
    if deployment.spec.paused or is_scaling(deployment, revisions.all):
        return _scale(deployment, revisions, now)
    return _roll_out(deployment, revisions, old_pods, now)


def _scale(deployment: Deployment, revisions: Revisions, now: float) -> Outcome:
    """The Deployment is paused, or has another size: no rollout meanwhile."""
    sizes = scaled_sizes(deployment, revisions)
    delete = _outdated(deployment, revisions) if deployment.spec.paused else ()
    status = counted(deployment, revisions, deployment.status.conditions, now)
    return Outcome(status, *_new_revision(deployment, revisions, sizes, noted=True), delete=delete)


def _roll_out(deployment: Deployment, revisions: Revisions, old_pods: bool, now: float) -> Outcome:
    """Scale up the new ReplicaSet first, and the old ones down if that was not possible; the other way for Recreate."""
    status = counted(deployment, revisions, deployment.status.conditions, now)
    recreate = deployment.spec.strategy.type == RECREATE
    sizes: Sizes = {}
    if recreate:
        sizes = {each.name: 0 for each in active(revisions.old)}
        waits = bool(sizes) or old_pods or any(each.status.replicas for each in revisions.old)
        if waits:
            return _rolled(deployment, revisions, sizes, status, now)
    new = revisions.new
    if new is None:
        return _created(deployment, revisions, status, now)
    wanted = new_size(deployment, new, revisions.all)
    if wanted != size(new):
        sizes = {new.name: wanted}
    elif not recreate:
        sizes = old_sizes(deployment, revisions)
    return _rolled(deployment, revisions, sizes, status, now)


def _rolled(
    deployment: Deployment, revisions: Revisions, sizes: Sizes, status: DeploymentStatus, now: float
) -> Outcome:
    status = with_progress(deployment, revisions, status, now)
    done = not sizes and is_complete(deployment, deployment.status)
    return Outcome(
        status,
        *_new_revision(deployment, revisions, sizes),
        delete=_outdated(deployment, revisions) if done else (),
        requeue_after=next_check(deployment, status, now),
    )


def _created(deployment: Deployment, revisions: Revisions, status: DeploymentStatus, now: float) -> Outcome:
    """The ReplicaSet of a new template is missing."""
    manifest = replica_set_of(deployment, deployment.status.collision_count)
    revision = str(next_revision(revisions.old))
    annotations = {REVISION_ANNOTATION: revision, **size_annotations(deployment)}
    manifest["metadata"]["annotations"] |= annotations
    manifest["spec"]["replicas"] = new_size(deployment, None, revisions.old)
    manifest["spec"]["minReadySeconds"] = deployment.spec.min_ready_seconds
    if has_deadline(deployment):
        text = f'Created new replica set "{manifest["metadata"]["name"]}"'
        created = condition(PROGRESSING, "True", "NewReplicaSetCreated", text, now)
        status = msgspec.structs.replace(status, conditions=with_condition(status.conditions, created))
    return Outcome(status, revision, create=manifest)


def _new_revision(
    deployment: Deployment, revisions: Revisions, sizes: Sizes, noted: bool = False
) -> tuple[str, tuple[Update, ...]]:
    """The revision of the new ReplicaSet, and what changes in this and the others.

    A ReplicaSet that gets another size notes that of the Deployment; with `noted` all that have a size do.
    """
    updates, number = [], ""
    for each in revisions.all:
        annotations, ready = dict[str, str](), each.spec.min_ready_seconds
        if each is revisions.new:
            annotations = new_annotations(deployment, each, next_revision(revisions.old))
            number = {**each.metadata.annotations, **annotations}.get(REVISION_ANNOTATION, "")
            ready = deployment.spec.min_ready_seconds
        wanted = sizes.get(each.name, size(each))
        if wanted != size(each) or (noted and each.name in sizes):
            annotations |= size_annotations(deployment)
        updates.append(Update(each, wanted, annotations, ready))
    return number, tuple(update for update in updates if update.changes)


def _outdated(deployment: Deployment, revisions: Revisions) -> tuple[ReplicaSet, ...]:
    """Old ReplicaSets beyond the history's limit, if they have no pods."""
    limit = deployment.spec.revision_history_limit
    if limit is None or limit == KEEP_ALL:
        return ()
    alive = [each for each in revisions.old if each.metadata.deletion_timestamp is None]
    excess = oldest_revisions(alive)[: max(0, len(alive) - limit)]
    return tuple(each for each in excess if _is_empty(each))


def _is_empty(replica_set: ReplicaSet) -> bool:
    seen = replica_set.status.observed_generation >= replica_set.metadata.generation
    return seen and not size(replica_set) and not replica_set.status.replicas
