"""Volumes of a pod: nodes that reach the bound ones, can bind the pending claims and can attach all; scores by storage.

Filters read a task's volumes as the one value that is part of its shape key, so all tasks with an equal value share the
results (spec 04 2.7, 2.8, 2.11).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from stromboli.api import names
from stromboli.engine.placement.node_functions import Bools, Check, Column, Nodes
from stromboli.model.volumes.attachments import LEAVING, VolumeUse, inline_disks
from stromboli.model.volumes.claim_kind import size_of
from stromboli.model.volumes.claim_problems import CREATE_CLAIM
from stromboli.model.volumes.task_volumes import volume_demand
from stromboli.model.volumes.volume_reach import nodes_in_zones, nodes_with_affinity
from stromboli.plugins.predicates.volume_remedies import (
    DISK_IN_USE,
    LOST_VOLUME,
    attachment_limit,
    claim_in_use,
    insufficient_storage,
    joined,
    unbindable_claims,
    volume_reach,
    volume_zones,
)
from stromboli.policy.arguments import arg

if TYPE_CHECKING:
    from stromboli.api.types.storage import PersistentVolume
    from stromboli.model.cluster import Cluster
    from stromboli.model.lookup_objects import LookupObjects
    from stromboli.model.node_columns import Columns, Ints
    from stromboli.model.remedy import Remedy
    from stromboli.model.task import Task
    from stromboli.model.volumes.claim_kind import DelayedClaim, VolumeDemand


_PODS = (VolumeUse.STAYING, VolumeUse.PROMISED, VolumeUse.EVICTED, VolumeUse.TERMINATING)


class _VolumeFilter:
    """A filter by what a task requires of a node by its volumes."""

    def __init__(self, cluster: Cluster, demand: VolumeDemand):
        self._cluster = cluster
        self._demand = demand


class VolumeZone(_VolumeFilter):
    """Nodes in the zones of all bound volumes."""

    def version(self, task: Task) -> int:
        return self._cluster.volumes.objects_version

    def checks(self, task: Task, nodes: Nodes) -> Iterator[Check]:
        reaching = _reaching(self._cluster, self._demand.zoned, nodes_in_zones)
        remedy = volume_zones(self._cluster)
        yield Check(nodes.pick(reaching), names.VOLUME_ZONE_MISMATCH, remedy=remedy)


class _Failure(NamedTuple):
    """Nodes that fail for a reason."""

    nodes: Bools
    reason: str
    remedy: Remedy


class VolumeBinding(_VolumeFilter):
    """Nodes that reach all bound volumes and on which all pending claims can be bound."""

    def version(self, task: Task) -> int:
        volumes = self._cluster.volumes
        return volumes.version if self._demand.delayed else volumes.objects_version

    def checks(self, task: Task, nodes: Nodes) -> Iterator[Check]:
        """A check for each combination of reasons, so that all reasons of a node are reported."""
        failures = self._failures()
        lists = np.zeros(len(self._cluster.columns), dtype=np.int64)
        for bit, (failing, _, _) in enumerate(failures):
            lists += failing.astype(np.int64) << bit
        for number in np.flatnonzero(np.bincount(lists)).tolist():
            some = [failure for bit, failure in enumerate(failures) if number >> bit & 1]
            if some:
                reasons = names.JOINED_REASONS.join(failure.reason for failure in some)
                remedy = joined([failure.remedy for failure in some])
                yield Check(nodes.pick(lists != number), reasons, remedy=remedy)

    def _failures(self) -> list[_Failure]:
        """Nodes that fail, reason by reason, in the order of reports (spec 04 2.11)."""
        demand, cluster = self._demand, self._cluster
        failures = []
        if demand.bound:
            reaching = _reaching(cluster, demand.bound, nodes_with_affinity)
            failures.append(_Failure(~reaching, names.VOLUME_AFFINITY_MISMATCH, volume_reach(cluster)))
        if demand.delayed:
            matching = cluster.volumes.matching.match(demand.delayed)
            unbindable = unbindable_claims(cluster)
            failures.append(_Failure(~matching.bindable, names.NO_VOLUME_TO_BIND, unbindable))
            too_full = matching.bindable & ~matching.enough
            failures.append(_Failure(too_full, names.NOT_ENOUGH_STORAGE, insufficient_storage(cluster)))
        if demand.lost:
            everywhere = np.ones(len(cluster.columns), dtype=bool)
            failures.append(_Failure(everywhere, names.BOUND_TO_MISSING_VOLUME, LOST_VOLUME))
        return failures


class _AttachmentFilter(_VolumeFilter):
    """A filter by the volumes that are attached to nodes."""

    def __init__(self, cluster: Cluster, demand: VolumeDemand):
        super().__init__(cluster, demand)
        self._attachments = cluster.volumes.attachments

    def version(self, task: Task) -> int:
        return self._attachments.version


class AttachableVolumes(_AttachmentFilter):
    """Nodes whose drivers can attach the volumes, as an ordinary resource of the node: no switch turns it off.

    Volcano counts a volume once for each pod. Here it counts once on its node, as for Kubernetes' own limits.
    """

    def checks(self, task: Task, nodes: Nodes) -> Iterator[Check]:
        for demand in self._demand.attachments:
            if not demand.required:
                continue
            attached = self._attachments.columns(demand.driver)
            limit, _ = self._attachments.limits(demand.driver)
            new = demand.fresh + self._attachments.not_attached(demand.driver, demand.handles, _PODS)
            later, now = _fits(attached.kept, new, limit), _fits(attached.held, new, limit)
            reason = names.INSUFFICIENT_ATTACHMENTS.format(driver=demand.driver)
            remedy = attachment_limit(self._cluster, demand.driver)
            yield Check(nodes.pick(later), reason, True, nodes.pick(later & now), remedy)


class NodeVolumeLimits(_AttachmentFilter):
    """Nodes that do not exceed the limit of a driver in their CSINode."""

    def checks(self, task: Task, nodes: Nodes) -> Iterator[Check]:
        if self._demand.missing:
            yield Check(~nodes.all(), self._demand.missing, remedy=CREATE_CLAIM)
        columns = self._cluster.columns
        later, now = np.ones(len(columns), dtype=bool), np.ones(len(columns), dtype=bool)
        new_of_driver: dict[str, Ints] = {}
        for demand in self._demand.attachments:
            new = demand.fresh + self._attachments.not_attached(demand.driver, demand.handles)
            new_of_driver[demand.driver] = new_of_driver.get(demand.driver, 0) + new
        for driver, new in new_of_driver.items():
            attached = self._attachments.columns(driver)
            _, limit = self._attachments.limits(driver)
            later &= _fits(attached.seen, new, limit)
            now &= _fits(attached.all, new, limit)
        remedy = attachment_limit(self._cluster)
        yield Check(nodes.pick(later), names.TOO_MANY_VOLUMES, True, nodes.pick(later & now), remedy)


class VolumeRestrictions(_VolumeFilter):
    """Nodes without a conflicting disk; none while another pod uses a claim for a single pod."""

    def __init__(self, cluster: Cluster, demand: VolumeDemand, task: Task):
        super().__init__(cluster, demand)
        self._volumes = cluster.volumes
        self._disks = inline_disks(task.shape.spec.volumes)

    def __bool__(self) -> bool:
        return bool(self._disks or self._demand.rivals)

    def version(self, task: Task) -> int:
        return self._volumes.version if self._demand.rivals else self._volumes.disks.version

    def checks(self, task: Task, nodes: Nodes) -> Iterator[Check]:
        if self._disks:
            later, now = self._volumes.disks.free(self._disks)
            yield Check(nodes.pick(later), names.DISK_CONFLICT, True, nodes.pick(now), DISK_IN_USE)
        uses = {use for claim in self._demand.rivals for use in self._volumes.uses(claim)}
        if uses:
            later = np.full(len(nodes), uses <= LEAVING)
            never = np.zeros(len(nodes), dtype=bool)
            yield Check(later, names.CLAIM_IN_USE, True, never, claim_in_use(self._cluster))


def _reaching(
    cluster: Cluster,
    volumes: tuple[str, ...],
    reaching: Callable[[Columns, LookupObjects, PersistentVolume], Bools],
) -> Bools:
    """Nodes that reach all of these volumes."""
    matching = np.ones(len(cluster.columns), dtype=bool)
    for name in volumes:
        volume = cluster.objects.volumes.get(name)
        if volume is not None:
            matching &= reaching(cluster.columns, cluster.objects, volume)
    return matching


def _fits(attached: Ints, new: Ints, limit: Ints) -> Bools:
    """Where a number of further volumes can be attached; zero is always possible."""
    fits: Bools = (new == 0) | (attached + new <= limit)
    return fits


# -- scores by storage, behind the feature gate StorageCapacityScoring: how full a node's storage would be
#
# Every pod with a pending claim is scored on every node, which is why the gate is off by default (spec 04 2.11).


FULL = 100
_SCALE = 10
"""Points of the shape have scores up to 10, nodes up to 100."""


@dataclass(frozen=True, slots=True)
class UtilizationPoint:
    """One point of a piecewise linear function: at this utilization, that score."""

    utilization: int = arg("utilization", 0, "Requested part of a volume's capacity, in percent.")
    score: int = arg("score", 0, "Score at this utilization, 0 to 10.")


class StorageScore:
    """Scores nodes by the share of their volumes or storage that the claims of a task would use."""

    def __init__(self, cluster: Cluster, shape: Sequence[UtilizationPoint]):
        self._cluster = cluster
        self._shape = shape

    def version(self, task: Task) -> int:
        return self._cluster.volumes.version

    def score(self, task: Task, nodes: Nodes) -> Column:
        cluster = self._cluster
        claims = volume_demand(cluster.volumes, cluster.objects, task).delayed
        rows = range(len(cluster.columns))
        return nodes.pick(np.array([self._of_node(claims, row) for row in rows], dtype=np.float64))

    def _of_node(self, claims: tuple[DelayedClaim, ...], row: int) -> int:
        volumes, objects = self._cluster.volumes, self._cluster.objects
        chosen = volumes.matching.choose(claims, row) or []
        static: dict[str, tuple[int, int]] = {}
        dynamic: dict[str, tuple[int, int]] = {}
        for claim, name in zip(claims, chosen, strict=False):
            of = claim.kind.storage_class
            volume = objects.volumes.get(name) if name else None
            if volume is not None:
                asked, size = static.get(of, (0, 0))
                static[of] = (asked + claim.kind.request, size + size_of(volume))
            elif (left := volumes.capacity.of_class(of).reported_for(row)) is not None:
                dynamic[of] = (dynamic.get(of, (0, 0))[0] + claim.kind.request, left)
        return self._mean(static or dynamic)

    def _mean(self, classes: dict[str, tuple[int, int]]) -> int:
        """The mean over classes, rounded half away from zero."""
        if not classes:
            return 0
        scores = [self._at(_utilization(asked, size)) for asked, size in classes.values()]
        return (2 * sum(scores) + len(scores)) // (2 * len(scores))

    def _at(self, utilization: int) -> int:
        """The value of the piecewise linear function, in whole numbers."""
        points = self._shape
        for index, point in enumerate(points):
            if utilization <= point.utilization:
                if index == 0:
                    return points[0].score * _SCALE
                low, high = points[index - 1], point
                rise = (high.score - low.score) * _SCALE * (utilization - low.utilization)
                step = abs(rise) // (high.utilization - low.utilization)
                return low.score * _SCALE + (step if rise >= 0 else -step)
        return points[-1].score * _SCALE if points else 0


def _utilization(asked: int, size: int) -> int:
    return FULL if size == 0 or asked > size else asked * FULL // size
