"""The sizes of a Deployment's ReplicaSets: in a rollout, and when it is scaled in the middle of one."""

from __future__ import annotations

import math
from collections.abc import Sequence

from stromboli.controllers.workloads.deployment.revisions import Revisions, age_order
from stromboli.controllers.workloads.deployment.rollout_limits import (
    ROLLING_UPDATE,
    least_available,
    most_pods,
    noted_number,
    size,
    total_size,
)
from stromboli.controllers.workloads.workload import desired_pods
from stromboli.controllers.workloads.workload_kinds import Deployment, ReplicaSet
from stromboli.controllers.workloads.workload_pods import DESIRED_REPLICAS, NOTED_LIMIT

Sizes = dict[str, int]
"""Of ReplicaSets, by name."""


def active(replica_sets: Sequence[ReplicaSet]) -> list[ReplicaSet]:
    """Those that are to have pods."""
    return [each for each in replica_sets if size(each) > 0]


# -- rolling update


def new_size(deployment: Deployment, new: ReplicaSet | None, replica_sets: Sequence[ReplicaSet]) -> int:
    """How large the new ReplicaSet is made: as large as the surge allows."""
    desired, present = desired_pods(deployment), 0 if new is None else size(new)
    if present >= desired or deployment.spec.strategy.type != ROLLING_UPDATE:
        return desired
    room = most_pods(deployment) - total_size(replica_sets)
    return present + max(0, min(room, desired - present))


def old_sizes(deployment: Deployment, revisions: Revisions) -> Sizes:
    """Which old ReplicaSets are made smaller: pods that are not available go first, whatever their age."""
    old, new = active(revisions.old), revisions.new
    assert new is not None
    unavailable_new = size(new) - _available(new)
    to_remove = total_size(revisions.all) - least_available(deployment) - unavailable_new
    if not old or to_remove <= 0:
        return {}
    sizes = {each.name: size(each) for each in old}
    for each in old:
        unhealthy = max(0, size(each) - each.status.available_replicas)
        removed = min(to_remove, unhealthy)
        sizes[each.name] -= removed
        to_remove -= removed
    spare = sum(map(_available, [*old, new])) - least_available(deployment)
    for each in old:
        removed = max(0, min(spare, sizes[each.name]))
        sizes[each.name] -= removed
        spare -= removed
    return {each.name: sizes[each.name] for each in old if sizes[each.name] != size(each)}


def _available(replica_set: ReplicaSet) -> int:
    """Available pods that stay: the status may still count some that were scaled away."""
    return min(replica_set.status.available_replicas, size(replica_set))


# -- scaling


def is_scaling(deployment: Deployment, replica_sets: Sequence[ReplicaSet]) -> bool:
    """Whether the Deployment has another size than an active ReplicaSet knows of."""
    noted = (noted_number(each, DESIRED_REPLICAS) for each in active(replica_sets))
    return any(number is not None and number != desired_pods(deployment) for number in noted)


def scaled_sizes(deployment: Deployment, revisions: Revisions) -> Sizes:
    """The size of a single active ReplicaSet; several keep their proportions, so that the rollout does not hasten."""
    desired, actives = desired_pods(deployment), active(revisions.all)
    if len(actives) <= 1:
        latest = actives[:1] or ([revisions.new] if revisions.new else revisions.old[-1:])
        return {each.name: desired for each in latest}
    if _is_saturated(deployment, revisions.new):
        return {each.name: 0 for each in active(revisions.old)}
    return _proportions(deployment, actives) if deployment.spec.strategy.type == ROLLING_UPDATE else {}


def _is_saturated(deployment: Deployment, new: ReplicaSet | None) -> bool:
    """Whether all pods of the Deployment are those of the new ReplicaSet, and available."""
    if new is None:
        return False
    numbers = (noted_number(new, DESIRED_REPLICAS), size(new), new.status.available_replicas)
    return set(numbers) == {desired_pods(deployment)}


def _proportions(deployment: Deployment, actives: Sequence[ReplicaSet]) -> Sizes:
    """From the largest to the smallest; of the same size the newer grow first, and the older shrink first."""
    allowed = most_pods(deployment) if desired_pods(deployment) else 0
    to_add = allowed - total_size(actives)
    ordered = sorted(actives, key=age_order, reverse=to_add > 0)
    ordered.sort(key=size, reverse=True)
    added, sizes = 0, dict[str, int]()
    for each in ordered:
        share = _share(deployment, each)
        share = min(share, to_add - added) if to_add > 0 else max(share, to_add - added)
        share = share if to_add not in (0, added) else 0
        sizes[each.name] = size(each) + share
        added += share
    largest = ordered[0].name
    sizes[largest] = max(0, sizes[largest] + to_add - added)
    return sizes


def _share(deployment: Deployment, replica_set: ReplicaSet) -> int:
    """By how much a ReplicaSet grows if it keeps its share of the Deployment."""
    if not desired_pods(deployment):
        return -size(replica_set)
    before = noted_number(replica_set, NOTED_LIMIT) or deployment.status.replicas
    if not before:
        return 0
    return math.floor(size(replica_set) * most_pods(deployment) / before + 0.5) - size(replica_set)
