"""Keep blocks whole: how much the gangs that are likely to arrive lose if a gang uses free nodes of some domain.

A domain with 70 free nodes is worth a gang of 64 to other gangs; with 10 nodes less it is worth none. So the best of
the domains that fit is the one whose free nodes are worth as much after as before; among those, the fullest part of the
network. It is the gradient descent of fragmentation (Weng et al., USENIX ATC 2023), over blocks of the network instead
of single nodes. Gangs that are likely to arrive are those that exist now, by their size and the requests of their pods,
so a scheduler that restarts computes the same.
"""

from __future__ import annotations

import math
from collections import Counter
from heapq import nsmallest
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from stromboli.engine.topology.topology_limits import requested_topology
from stromboli.model.amounts import total_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from stromboli.engine.placement.node_functions import Floats
    from stromboli.model.amounts import Vector
    from stromboli.model.cluster import Cluster, Dirty
    from stromboli.model.job import Job, SubJob
    from stromboli.model.node_columns import Ints
    from stromboli.model.topology.hyper_node_tree import HyperNodeTree
    from stromboli.plugins.network_topology_aware.session_sums import SessionSums


# -- kinds of gangs


KINDS = 8
"""Maximum number of kinds that count: the most frequent ones."""


class GangKind(NamedTuple):
    """A number of pods, and their average request by resource."""

    pods: int
    request: tuple[tuple[int, float], ...]


class GangKinds:
    """The number of gangs of each kind, running or pending; follows what changed since the last session."""

    def __init__(self) -> None:
        self._of_job: dict[Job, list[GangKind]] = {}
        self._counts: Counter[GangKind] = Counter()
        self._shares: list[tuple[GangKind, float]] | None = None

    def update(self, cluster: Cluster, dirty: Dirty) -> None:
        """Count jobs that changed again."""
        changed: Iterable[Job] = dirty.jobs
        if dirty.everything:
            self._of_job, self._counts, self._shares = {}, Counter(), None
            changed = list(cluster.jobs.values())
        for job in changed:
            kinds = list(_kinds(job)) if cluster.jobs.get(job.id) is job else []
            if kinds != self._of_job.get(job, []):
                self._replace(job, kinds)

    def _replace(self, job: Job, kinds: list[GangKind]) -> None:
        gone = self._of_job.pop(job, [])
        self._counts.subtract(gone)
        for kind in gone:
            if self._counts[kind] <= 0:
                del self._counts[kind]
        if kinds:
            self._of_job[job] = kinds
            self._counts.update(kinds)
        self._shares = None

    def shares(self) -> list[tuple[GangKind, float]]:
        """The most frequent kinds, each with its fraction of all gangs."""
        if self._shares is None:
            first = nsmallest(KINDS, self._counts.items(), key=lambda item: (-item[1], item[0]))
            total = self._counts.total()
            self._shares = [(kind, count / total) for kind, count in first]
        return self._shares


def kind_of(pods: int, total: Vector) -> GangKind:
    """The kind of a gang by the number and the total request of its pods."""
    return GangKind(pods, tuple((dim, amount / pods) for dim, amount in sorted(total.items()) if amount > 0))


def total_request(sub_job: SubJob) -> Vector:
    """What all tasks of a sub-group request, whatever their status."""
    if not sub_job.job.policies:
        return sub_job.job.total
    return total_of(task.request for task in sub_job.tasks)


def _kinds(job: Job) -> Iterator[GangKind]:
    """The kind of each sub-group of a job that has a topology."""
    for sub_job in job.sub_jobs.values() if job.visible else ():
        if sub_job.tasks and requested_topology(sub_job) is not None:
            yield kind_of(len(sub_job.tasks), total_request(sub_job))


LOSS, PACKING = 1000.0, 10.0
"""The loss decides first, then the utilization of the wider parts of the network, then that of the domain."""


# -- the worth of domains


_WIDER = 16.0
"""The weight of the utilization of a domain, relative to the next one below."""
_ROUNDING = 1e-6


class BlockWorth:
    """Scores domains by what is left of them for gangs of the given sizes, else of the kinds that exist."""

    def __init__(self, sizes: Sequence[int]):
        self._sizes = sizes
        self._seen = GangKinds()
        self._version = -1

    def learn(self, cluster: Cluster, dirty: Dirty) -> None:
        """Count the gangs that exist."""
        if not self._sizes:
            self._seen.update(cluster, dirty)

    def follow(self, tree: HyperNodeTree) -> None:
        """Read the tier and the parent of each domain, by its place."""
        if self._version == tree.version:
            return
        self._version = tree.version
        domains, place = tree.lookup.domains, tree.lookup.place
        self._tiers: Ints = np.array([domain.tier for domain in domains], dtype=np.int64)
        self._parents: Ints = np.array([place[domain.parent or domain] for domain in domains], dtype=np.int64)
        self._depth = max(sum(1 for _ in domain.ancestors()) for domain in domains)

    def scores(self, sub_job: SubJob, need: Vector, sums: SessionSums, fullness: Floats) -> Floats:
        """The score of each domain for the request of a sub-group, by its place."""
        loss = np.zeros(len(self._tiers))
        for kind, share in self._kinds(sub_job):
            loss += share * self._loss(kind, need, sums)
        return PACKING * self._packing(fullness) - LOSS * loss

    def _kinds(self, sub_job: SubJob) -> list[tuple[GangKind, float]]:
        """The kinds of gangs that are likely to arrive, with their probabilities."""
        if not self._sizes:
            return self._seen.shares()
        like_this = kind_of(len(sub_job.tasks), total_request(sub_job))
        return [(like_this._replace(pods=size), 1 / len(self._sizes)) for size in self._sizes]

    def _loss(self, kind: GangKind, need: Vector, sums: SessionSums) -> Floats:
        """What gangs of a kind lose in the lowest domains that can hold them, as a multiple of what is taken."""
        holding = self._tiers[_pods_that_fit(kind, sums.allocatable) >= kind.pods]
        taken = max((need.get(dim, 0) / amount for dim, amount in kind.request), default=0.0)
        if not len(holding) or taken <= 0:
            return np.zeros(len(self._tiers))
        fitting = _pods_that_fit(kind, sums.free)
        left = np.maximum(fitting - math.ceil(taken - _ROUNDING), 0.0)
        lost: Floats = (fitting // kind.pods - left // kind.pods) * kind.pods / taken
        return lost[self._around(int(holding.min()))]

    def _around(self, tier: int) -> Ints:
        """For each domain the lowest one of a tier or higher that contains it."""
        around = np.arange(len(self._tiers))
        for _ in range(self._depth):
            around = np.where(self._tiers[around] < tier, self._parents[around], around)
        return around

    def _packing(self, fullness: Floats) -> Floats:
        """The utilization of the domains that contain each domain, from 0 to 1; the widest has the largest weight."""
        total, weights, around = np.zeros(len(fullness)), 0.0, np.arange(len(fullness))
        for step in range(self._depth):
            weight = _WIDER ** (step - self._depth)
            total += weight * fullness[around]
            weights += weight
            around = self._parents[around]
        return total / weights


def _pods_that_fit(kind: GangKind, amounts: Ints) -> Floats:
    """For how many pods of a kind these amounts of each domain suffice."""
    pods: Floats = np.full(amounts.shape[1], np.inf)
    for dim, amount in kind.request:
        of_dim = amounts[dim] if dim < len(amounts) else np.zeros(amounts.shape[1])
        pods = np.minimum(pods, np.floor(np.maximum(of_dim, 0) / amount + _ROUNDING))
    return np.where(np.isfinite(pods), pods, 0.0)
