"""Keep blocks whole: what the gangs that are likely to come would lose if a gang took its room in some domain.

A domain with room for 70 nodes is worth a gang of 64 to others; with 10 nodes less it is worth none. So of domains
that fit, that is best whose room is worth as much after as before; among those, the fullest part of the network. It is
the gradient descent of fragmentation (Weng et al., USENIX ATC 2023), over blocks of the network, not single nodes.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from stromboli.plugins.network_topology_aware.gang_kinds import GangKinds, kind_of, total_request

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stromboli.engine.placement.node_functions import Floats
    from stromboli.model.amounts import Vector
    from stromboli.model.cluster import Cluster, Dirty
    from stromboli.model.job import SubJob
    from stromboli.model.node_columns import Ints
    from stromboli.model.topology.hyper_node_tree import HyperNodeTree
    from stromboli.plugins.network_topology_aware.gang_kinds import GangKind
    from stromboli.plugins.network_topology_aware.session_sums import SessionSums

LOSS, PACKING = 1000.0, 10.0
"""What is lost goes before how full the wider parts of the network are, and that before the domain itself."""
_WIDER = 16.0
"""How much more each wider domain counts in how full they are."""
_ROUNDING = 1e-6


class BlockWorth:
    """Scores domains by what is left of them for gangs of the given sizes, else of the kinds that there are."""

    def __init__(self, sizes: Sequence[int]):
        self._sizes = sizes
        self._seen = GangKinds()
        self._version = -1

    def learn(self, cluster: Cluster, dirty: Dirty) -> None:
        """See which gangs there are."""
        if not self._sizes:
            self._seen.update(cluster, dirty)

    def follow(self, tree: HyperNodeTree) -> None:
        """Note which domain is around which, each by its place in the sums."""
        if self._version == tree.version:
            return
        self._version = tree.version
        domains = [*tree.domains.values(), tree.top]
        place = {domain: place for place, domain in enumerate(domains)}
        self._tiers: Ints = np.array([domain.tier for domain in domains], dtype=np.int64)
        parents = [place[domain.parent] if domain.parent is not None else place[domain] for domain in domains]
        self._parents: Ints = np.array(parents, dtype=np.int64)
        self._depth = max(sum(1 for _ in domain.ancestors()) for domain in domains)

    def scores(self, sub_job: SubJob, need: Vector, sums: SessionSums, fullness: Floats) -> Floats:
        """How good it is to take what a sub-group needs from each domain, by its place."""
        loss = np.zeros(len(self._tiers))
        for kind, share in self._kinds(sub_job):
            loss += share * self._loss(kind, need, sums)
        return PACKING * self._packing(fullness) - LOSS * loss

    def _kinds(self, sub_job: SubJob) -> list[tuple[GangKind, float]]:
        """The gangs that are likely to come, with how likely each kind is."""
        if not self._sizes:
            return self._seen.shares()
        like_this = kind_of(len(sub_job.tasks), total_request(sub_job))
        return [(like_this._replace(pods=size), 1 / len(self._sizes)) for size in self._sizes]

    def _loss(self, kind: GangKind, need: Vector, sums: SessionSums) -> Floats:
        """What gangs of a kind lose, as a multiple of what is taken: in the lowest domains that can hold them."""
        holding = self._tiers[_pods_that_fit(kind, sums.allocatable) >= kind.pods]
        taken = max((need.get(dim, 0) / amount for dim, amount in kind.request), default=0.0)
        if not len(holding) or taken <= 0:
            return np.zeros(len(self._tiers))
        room = _pods_that_fit(kind, sums.free)
        left = np.maximum(room - math.ceil(taken - _ROUNDING), 0.0)
        lost: Floats = (room // kind.pods - left // kind.pods) * kind.pods / taken
        return lost[self._around(int(holding.min()))]

    def _around(self, tier: int) -> Ints:
        """Of each domain the lowest around it (or itself) that is of a tier or higher."""
        around = np.arange(len(self._tiers))
        for _ in range(self._depth):
            around = np.where(self._tiers[around] < tier, self._parents[around], around)
        return around

    def _packing(self, fullness: Floats) -> Floats:
        """How full the domains around each domain are, the wider the more it counts, from 0 to 1."""
        total, weights, around = np.zeros(len(fullness)), 0.0, np.arange(len(fullness))
        for step in range(self._depth):
            weight = _WIDER ** (step - self._depth)
            total += weight * fullness[around]
            weights += weight
            around = self._parents[around]
        return total / weights


def _pods_that_fit(kind: GangKind, amounts: Ints) -> Floats:
    """How many pods of a kind each domain has these amounts for."""
    pods: Floats = np.full(amounts.shape[1], np.inf)
    for dim, amount in kind.request:
        there = amounts[dim] if dim < len(amounts) else np.zeros(amounts.shape[1])
        pods = np.minimum(pods, np.floor(np.maximum(there, 0) / amount + _ROUNDING))
    return np.where(np.isfinite(pods), pods, 0.0)
