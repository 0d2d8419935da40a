"""Place gangs close together in the network, and pack other pods into the parts that are in use (spec 04 9)."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING

import numpy as np

from stromboli.api import names
from stromboli.engine.placement.node_functions import Column, Nodes, NodeScore
from stromboli.engine.plugin import Plugin
from stromboli.engine.topology.topology_limits import requested_topology
from stromboli.model.amounts import total_of
from stromboli.model.cluster import Dirty
from stromboli.model.job import READY_STATUSES, Job, SubJob
from stromboli.model.requirements.placement_requirement import HARD_NETWORK_TOPOLOGY, SOFT_NETWORK_TOPOLOGY
from stromboli.model.status import Status
from stromboli.plugins.network_topology_aware.block_worth import BlockWorth, total_request
from stromboli.plugins.network_topology_aware.leaf_distances import LeafDistances, PlacedTasks, RankNeighbours
from stromboli.plugins.network_topology_aware.session_sums import Part, SessionSums
from stromboli.policy.argument_checks import at_least
from stromboli.policy.arguments import arg, arg_prefix

if TYPE_CHECKING:
    from stromboli.engine.placement.node_functions import Bools, Floats
    from stromboli.engine.session import Session
    from stromboli.model.amounts import Vector
    from stromboli.model.cluster import Change, Cluster
    from stromboli.model.task import Task
    from stromboli.model.topology.domain import Domain


ABOVE_ALL = 1e9
"""A weight above all other scores of a node together."""


def _sizes(sizes: Sequence[int]) -> str | None:
    return None if all(size > 0 for size in sizes) else "must be above zero, each of them"


@dataclass(frozen=True, slots=True)
class TopologyArguments:
    """The weight of closeness, and how the utilization of HyperNodes is measured. A negative weight counts as 1."""

    weight: int = arg("weight", 1, "Weight of all scores of this plugin; 0 disables them.", check=at_least(0))
    cpu: int = arg(
        "hypernode.binpack.cpu", 1, "Weight of cpu in the utilization of a HyperNode.", check=at_least(0)
    )
    memory: int = arg(
        "hypernode.binpack.memory",
        1,
        "Weight of memory in the utilization of a HyperNode.",
        check=at_least(0),
    )
    resources: str = arg("hypernode.binpack.resources", "", "Other resources that count, comma-separated.")
    resource_weights: Mapping[str, int] = arg_prefix(
        "hypernode.binpack.resources.", 1, "Weight of one of the other resources.", check=at_least(0)
    )
    normal_pods: bool = arg(
        "hypernode.binpack.normal-pod.enable",
        True,
        "Whether pods without a network topology are packed into HyperNodes in use.",
    )
    fading: float = arg(
        "hypernode.binpack.normal-pod.fading",
        0.8,
        "Factor by which each higher tier counts less for them; 0.8 for negative values.",
        check=at_least(0),
    )
    evict_hyper_nodes: int = arg(
        "hypernode.gradient.evict.max-hypernodes",
        8,
        "Maximum number of HyperNodes to try when pods are evicted for a gang.",
        check=at_least(1),
    )
    start_with_minimum: bool = arg(
        "startWithMinimum",
        False,
        "Whether a gang may start in a HyperNode that fits its minimum if none fits all its pods.",
    )
    ranks_side_by_side: bool = arg(
        "ranksSideBySide",
        False,
        "Whether the pods of a gang fill one leaf of the tree before the next, in index order.",
    )
    keep_blocks_whole: bool = arg(
        "keepBlocksWhole",
        False,
        "Whether a gang takes the capacity that is least valuable for likely future gangs.",
    )
    gang_sizes: tuple[int, ...] = arg(
        "gangSizes",
        (),
        "Numbers of pods of likely future gangs. Default: those of the running and pending gangs.",
        check=_sizes,
    )

    def weights(self) -> dict[str, int]:
        """How much each resource counts, by name."""
        listed = filter(None, map(str.strip, self.resources.split(",")))
        weights = {name: self.resource_weights[name] for name in listed}
        return weights | {names.CPU: self.cpu, names.MEMORY: self.memory}


class NetworkTopologyAware(Plugin):
    """Places a gang in the lowest HyperNode that fits it, and prefers nodes near its other pods."""

    name = "network-topology-aware"
    honours = frozenset({HARD_NETWORK_TOPOLOGY.name, SOFT_NETWORK_TOPOLOGY.name})
    Arguments = TopologyArguments
    arguments: TopologyArguments

    def __init__(self, arguments: TopologyArguments, switches: dict[str, bool]):
        super().__init__(arguments, switches)
        self._weights = arguments.weights()
        if not arguments.start_with_minimum:
            self.fewer_pods_remedy = f"set startWithMinimum of {self.name}"
        self._scale = 100.0 * arguments.weight
        self._active = False
        self._layout: Hashable = None
        self._sums: SessionSums | None = None
        self._blocks: BlockWorth | None = None
        self._known_scores: tuple[tuple[int, SubJob], Floats] | None = None
        self._known_minimum: tuple[tuple[int, SubJob], Vector] | None = None

    # -- sessions

    def opening(self, session: Session, dirty: Dirty) -> None:
        cluster = session.cluster
        tree, columns = cluster.hyper_nodes, cluster.columns
        self._active, self._sums, self._known_scores = bool(tree), None, None
        self._known_minimum = None
        if not self._active:
            self._blocks = None
            return
        if self._layout != (tree.version, columns.layout):
            self._layout = (tree.version, columns.layout)
            self._distances = LeafDistances(tree)
            self._tier_weights = TierWeights(tree.tiers, self.arguments.fading)
        self._placed = PlacedTasks(self._distances)
        self._ranks = RankNeighbours(self._distances, self._placed)
        if self.arguments.keep_blocks_whole:
            self._keep_blocks(cluster, dirty)
        if cluster.backlog:
            self._session_sums()  # as of now

    def _keep_blocks(self, cluster: Cluster, dirty: Dirty) -> None:
        """Update the kinds of gangs and the tree that `keepBlocksWhole` reads."""
        if self._blocks is None:
            self._blocks, dirty = BlockWorth(self.arguments.gang_sizes), Dirty(everything=True)
        self._blocks.learn(cluster, dirty)
        self._blocks.follow(cluster.hyper_nodes)

    def _session_sums(self) -> SessionSums:
        if self._sums is None:
            cluster = self.session.cluster
            self._sums = SessionSums(cluster.hyper_nodes.sums(cluster.columns))
        return self._sums

    def on_move(self, change: Change) -> None:
        if self._active:
            self._placed.follow(change)

    # -- HyperNodes to try

    def hyper_node_gradients(self, unit: Job | SubJob, root: Domain, purpose: str) -> Gradients:
        highest_tier = self.session.topology.tier_limit(unit)
        if highest_tier is None:
            return [[root]]
        allocated = self.session.topology.allocated_domain(unit)
        start = search_root(root, allocated, highest_tier)
        if start is None:
            return []
        place = self._session_sums().place

        def allowed(fitting: Bools, domain: Domain) -> bool:
            return domain.tier <= highest_tier and bool(fitting[place[domain]])

        fitting_domains = self._fitting_domains(unit, purpose, bool(allocated))
        parts = [by_tier(start, partial(allowed, fitting)) for fitting in fitting_domains]
        if purpose == "evict":
            return widest_first(list(chain(*reversed(parts))), self.arguments.evict_hyper_nodes)
        fitting, *partly = parts
        if not any(partly):
            return fitting
        pending = unit.pending if isinstance(unit, Job) else whole_request(unit)
        share = self._session_sums().share(pending)
        return [*fitting, *freest_first(list(chain(*partly)), lambda domain: float(share[place[domain]]))]

    def _fitting_domains(self, unit: Job | SubJob, purpose: str, started: bool) -> list[Bools]:
        """The domains with enough free resources, in the order to try; all if the gang has running pods."""
        sums = self._session_sums()
        if started:
            return [np.ones(len(sums.place), dtype=bool)]
        enough = sums.with_capacity(whole_request(unit), purpose)
        needed = self.session.rules.tasks_needed(unit) if self.arguments.start_with_minimum else None
        if needed is None or needed >= unit.counts[Status.PENDING] - unit.pending_best_effort:
            return [enough]
        if isinstance(unit, Job):
            for_all = enough & sums.with_capacity(unit.pending, purpose)
        else:
            for_all, enough = enough, sums.with_capacity(self._minimum(unit, needed), purpose)
        return [for_all, enough & ~for_all]

    def _minimum(self, sub_job: SubJob, needed: int) -> Vector:
        """What a sub-group lacks to its minimum; cached until something moves."""
        moment = (self.session.cluster.columns.clock, sub_job)
        if self._known_minimum is None or self._known_minimum[0] != moment:
            self._known_minimum = (moment, minimum_request(sub_job, needed))
        return self._known_minimum[1]

    def hyper_node_scores(self, sub_job: SubJob, domains: Sequence[Domain]) -> Mapping[str, float]:
        """The fuller a HyperNode would be the better; among the best, the more tasks it has already."""
        place, scores_of_all = self._session_sums().place, self._scores_of_all(sub_job)
        scores = {domain: float(scores_of_all[place[domain]]) for domain in domains}
        best_score = max(scores.values(), default=0.0)
        best = [domain for domain in domains if scores[domain] == best_score]
        if len(best) > 1:
            rows = [task.node.row for task in sub_job.tasks if task.node is not None and task.node.row >= 0]
            for domain in best if rows else ():
                scores[domain] += int(np.isin(rows, domain.rows).sum()) / len(sub_job.tasks)
        return {domain.name: self._scale * score for domain, score in scores.items()}

    def _scores_of_all(self, sub_job: SubJob) -> Floats:
        """The score of every HyperNode for a sub-group; cached until something moves."""
        moment = (self.session.cluster.columns.clock, sub_job)
        if self._known_scores is None or self._known_scores[0] != moment:
            sums = self._session_sums()
            scores = sums.fullness(self._parts(total_request(sub_job)))
            if self._blocks is not None:
                scores = scores + self._blocks.scores(sub_job, whole_request(sub_job), sums, scores)
            self._known_scores = (moment, scores)
        return self._known_scores[1]

    def _parts(self, request: Vector) -> list[Part]:
        """The resources of a request that count, in a fixed order."""
        dims = self.session.cluster.dims
        return [
            (dim, request[dim], self._weights[dims.names[dim]])
            for dim in dims.ordered(request)
            if request[dim] > 0 and dims.names[dim] in self._weights
        ]

    # -- nodes

    def shape_key(self, task: Task) -> str:
        """Whether a gang is kept together; what more its scores read is in their version."""
        if not self._active or task.job is None:
            return ""
        if task.sub_job is None:
            return "alone"
        return "packed" if requested_topology(task.sub_job) is None else "topology"

    def node_scores(self, task: Task) -> Iterable[NodeScore]:
        if not self._active or task.job is None or not self._scale:
            return
        if task.sub_job is not None and requested_topology(task.sub_job) is not None:
            yield NodeScore(
                self._leaf_codes,
                plugin=self.name,
                reads="pods",
                version=self._gang_version,
                finish=self._gang_scores,
                of_some_nodes=True,
                batch=True,
            )
        elif self.arguments.normal_pods and self._tier_weights.of_tier:
            # quirk: spec 04 9: what is in no sub-group gets a score that is not scaled
            scale = self._scale if task.sub_job is not None else 1.0
            yield NodeScore(
                partial(self._packing, scale),
                plugin=self.name,
                reads="pods",
                version=self._packing_version,
                batch=True,
            )

    def _packing_version(self, task: Task) -> Hashable:
        """Evicted amounts count as used again once another session opens."""
        return self._layout, self.session.cluster.columns.clock, self._session_sums().opened

    def _gang_version(self, task: Task) -> Hashable:
        sub_job = task.sub_job
        domain = self.session.topology.allocated_domain(sub_job) if sub_job is not None else None
        if sub_job is None or not self._decides(domain):
            return self._layout
        version = (self._layout, domain, len(sub_job.tasks), self._placed.by_leaf(sub_job))
        if not self.arguments.ranks_side_by_side:
            return version
        columns = self.session.cluster.columns
        return *version, columns.clock, self._ranks.leaf_of_neighbour(task, sub_job)

    def _decides(self, domain: Domain | None) -> bool:
        """Whether nodes differ for a sub-group that is in this domain."""
        return domain is not None or self.arguments.ranks_side_by_side

    def _leaf_codes(self, task: Task, nodes: Nodes) -> Column:
        """The leaf of each node; zeros if it makes no difference."""
        if task.sub_job is None or not self._decides(self.session.topology.allocated_domain(task.sub_job)):
            return nodes.zeros()
        return nodes.pick(self._distances.of_row).astype(np.float64)

    def _gang_scores(self, task: Task, nodes: Nodes, raw: Column, candidates: Column) -> Column:
        """How close nodes are to where the sub-group is; with ranks side by side, those of one leaf above all."""
        sub_job = task.sub_job
        if sub_job is None:
            return nodes.zeros()
        scores = self._closeness(sub_job, nodes, candidates) * self._scale
        if self.arguments.ranks_side_by_side:
            leaf = self._ranks.next_leaf(task, sub_job, nodes, candidates)
            scores += (
                np.where(nodes.pick(self._distances.of_row) == leaf, ABOVE_ALL, 0.0) if leaf >= 0 else 0.0
            )
        return scores

    def _closeness(self, sub_job: SubJob, nodes: Nodes, candidates: Column) -> Column:
        """How close nodes are to where the sub-group is; among the closest, leaves that have more of it."""
        domain = self.session.topology.allocated_domain(sub_job)
        if domain is None:
            return nodes.zeros()
        leaves = nodes.pick(self._distances.of_row)
        scores: Column = self._distances.closeness(domain)[leaves]
        best = candidates & (scores == scores[candidates].max(initial=0.0))
        if np.count_nonzero(best) > 1:
            scores += np.where(best, self._placed.shares(sub_job)[leaves], 0.0)
        return scores

    def _packing(self, scale: float, task: Task, nodes: Nodes) -> Column:
        """How full the HyperNodes of a node would be, the lower tiers counting more; outside of all is best."""
        fullness = np.append(self._session_sums().fullness(self._parts(task.request)), 1.0)
        lookup, weights = self.session.cluster.hyper_nodes.lookup, self._tier_weights
        score = np.full(len(nodes), weights.without_hyper_nodes)
        for tier, weight in weights.of_tier.items():
            score += weight * fullness[nodes.pick(lookup.of_tier(tier))]
        return score * scale


# -- which HyperNodes to try for a job or a sub-group, in which order (spec 04 9, 02 3.4 and 7.1)


Gradients = list[list["Domain"]]


def search_root(root: Domain, allocated: Domain | None, highest_tier: int) -> Domain | None:
    """Where to search: in the root, and in the widest domain allowed around what is allocated; none: nowhere."""
    if allocated is None:
        return root
    widest = None
    for ancestor in allocated.ancestors():
        if ancestor.tier > highest_tier:
            break
        widest = ancestor
    if widest is None:
        return None
    if widest.contains(root):
        return root
    return widest if root.contains(widest) else None


def by_tier(root: Domain, eligible: Callable[[Domain], bool]) -> Gradients:
    """The eligible domains at and below a root, grouped by tier, the lowest first; by name within a tier."""
    groups: dict[int, list[Domain]] = {}
    waiting = deque([root])
    while waiting:
        domain = waiting.popleft()
        if eligible(domain):
            groups.setdefault(domain.tier, []).append(domain)
        waiting.extend(domain.children)
    return [sorted(groups[tier], key=lambda domain: domain.name) for tier in sorted(groups)]


def freest_first(gradients: Gradients, free: Callable[[Domain], float]) -> Gradients:
    """The same tiers, each in groups of domains with equally much free, those with the most first."""
    chosen: Gradients = []
    for group in gradients:
        by_free: dict[float, list[Domain]] = {}
        for domain in group:
            by_free.setdefault(free(domain), []).append(domain)
        chosen += (by_free[size] for size in sorted(by_free, reverse=True))
    return chosen


def widest_first(gradients: Gradients, limit: int) -> Gradients:
    """The highest tiers first, up to a number of domains; a group that exceeds it loses its first domains."""
    chosen: Gradients = []
    for group in reversed(gradients):
        if limit <= 0:
            break
        chosen.append(group[-limit:])
        limit -= len(group)
    return chosen


# -- the capacity that a domain must have for a job or a sub-group (spec 04 9)


def whole_request(unit: Job | SubJob) -> Vector:
    """The resources that Volcano requires in a domain: a job's minimum, or all pending tasks of a sub-group."""
    if isinstance(unit, Job):
        return unit.min_resources or {}
    if not unit.job.policies:
        return unit.job.pending
    return total_of(task.request for task in _pending(unit))


def minimum_request(sub_job: SubJob, needed: int) -> Vector:
    """The minimum that a sub-group requests to start with some number of its pending tasks.

    Among these are as many of each role as the job lacks to its role minimums.
    """
    by_role: dict[str, list[Task]] = {}
    for task in _pending(sub_job):
        if not task.best_effort:
            by_role.setdefault(task.role, []).append(task)
    lacking = {role: _lacking(sub_job.job, role) for role in by_role}
    dims = {dim for tasks in by_role.values() for task in tasks for dim in task.request}
    return {dim: _least(dim, by_role, lacking, needed) for dim in dims}


def _least(dim: int, by_role: Mapping[str, list[Task]], lacking: Mapping[str, int], needed: int) -> float:
    """The minimum of a resource: the smallest requests of each role that lacks tasks, then of all others."""
    total, rest = 0.0, list[float]()
    for role, tasks in by_role.items():
        requests = sorted(task.request.get(dim, 0) for task in tasks)
        total += sum(requests[: lacking[role]])
        rest += requests[lacking[role] :]
        needed -= min(lacking[role], len(requests))
    return total + sum(sorted(rest)[: max(needed, 0)])


def _lacking(job: Job, role: str) -> int:
    """The number of tasks of a role still to be placed before the job can start; sub-groups may each have some."""
    if not job.role_minimums_apply or job.policies or role not in job.role_minimums:
        return 0
    counts = job.role_counts.get(role)
    have = sum(counts[status] for status in (*READY_STATUSES, Status.PIPELINED)) if counts else 0
    return max(job.role_minimums[role] - have - job.role_pending_best_effort(role), 0)


def _pending(sub_job: SubJob) -> list[Task]:
    return [task for task in sub_job.tasks if task.status is Status.PENDING]


# -- how much each tier counts for pods without a network topology: the higher, the less


class TierWeights:
    """The weight `fading^(tier-1)` of every whole tier from the lowest to the highest, divided by the sum of all.

    Tiers without HyperNodes count too: nodes have the full score there. There may be any number of them, so runs of
    them are summed by formula, and only ratios of powers are computed, which stay finite.
    """

    def __init__(self, tiers: Sequence[int], fading: float):
        lowest, highest = tiers[0], tiers[-1]
        self.of_tier: dict[int, float] = {}
        """The weight of each tier that has HyperNodes; empty if no tier counts."""
        if fading == 0:  # 0^0 = 1: tier 1 alone
            self.of_tier = {tier: float(tier == 1) for tier in tiers} if lowest <= 1 <= highest else {}
        else:
            total = _total(fading, lowest, highest, lowest, highest)
            self.of_tier = {tier: _total(fading, tier, tier, lowest, highest) / total for tier in tiers}
        self.without_hyper_nodes = max(1.0 - sum(self.of_tier.values()), 0.0) if self.of_tier else 0.0
        """The weight of the tiers in between that have none."""


def _total(fading: float, first: int, last: int, lowest: int, highest: int) -> float:
    """The sum of the powers of some tiers, relative to the largest power of all."""
    ratio, distance = (fading, first - lowest) if fading <= 1 else (1 / fading, highest - last)
    count = last - first + 1
    series = float(count) if ratio == 1 else (1 - ratio**count) / (1 - ratio)
    return ratio**distance * series
