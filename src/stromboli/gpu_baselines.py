"""Baselines to compare `fgd` with: best fit, dot product, packing, clustering, random.

Each scores nodes from 0 to 100 by the CPU and GPUs that are free before the task is placed. A part of a GPU is one of a
card that `deviceshare` shares out; it is taken from the GPU with the least free capacity that suffices.

They are registered as third-party plugins are: by an entry point in `pyproject.toml`.
"""

from __future__ import annotations

import zlib
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from stromboli.api import names
from stromboli.engine.placement.node_functions import Column, Floats, Nodes, NodeScore
from stromboli.engine.plugin import Plugin
from stromboli.model.cards.gpu_columns import WHOLE, GpuColumns, GpuDemand, GpuDemands, free_shares
from stromboli.policy.argument_checks import at_least
from stromboli.policy.arguments import arg

if TYPE_CHECKING:
    from stromboli.engine.session import Session
    from stromboli.model.cards.node_cards import NodeCards
    from stromboli.model.cluster import Dirty
    from stromboli.model.node_columns import Ints, Node
    from stromboli.model.task import Task

PUBLISHED_CPU, PUBLISHED_GPUS = 128_000, 8
"""The sizes by which the paper measures what is free."""
_WEIGHT = "Weight of the score; 0 disables it."
_RESOURCE = "Resource of whole GPUs, on nodes without shared cards."
_PUBLISHED = (
    "Score as in the paper on `fgd`: whole points, measured by a node of 128 CPUs and 8 GPUs. "
    "Otherwise points have fractions and are measured by the largest node."
)


MAX_KINDS = 10_000
"""Maximum cached combinations of kinds; then those that no node has are dropped."""
SHARED, NO_GPU = 0, -1
"""Kinds of tasks besides those by number of whole GPUs."""


class _GpuScore(Plugin):
    """A score of nodes by their free CPU and GPUs."""

    def opening(self, session: Session, dirty: Dirty) -> None:
        if dirty.everything or not hasattr(self, "_gpus"):
            self._gpus = GpuColumns(session.cluster, self.arguments.resource)
            self._demands = GpuDemands(session.cluster, self.arguments.resource)

    def node_scores(self, task: Task) -> Iterator[NodeScore]:
        if self.arguments.weight:
            score = partial(self._score, self._demands.of(task))
            yield NodeScore(score, self.name, "pods", self._version, float(self.arguments.weight))

    def _version(self, task: Task) -> Hashable:
        cluster = self.session.cluster
        return cluster.columns.clock, cluster.columns.layout, cluster.cards.changes.position

    def _score(self, demand: GpuDemand, task: Task, nodes: Nodes) -> Column:
        self._gpus.update()
        asked = self._gpus.shares_of(demand, np.arange(len(self._gpus.cpu)))
        return nodes.pick(self._points(demand, asked))

    def _points(self, demand: GpuDemand, asked: Ints) -> Floats:
        raise NotImplementedError

    def card_order(self, task: Task, node: Node, cards: NodeCards) -> Sequence[int] | None:
        """The GPUs with the least that is free come first."""
        free = free_shares(cards)
        return sorted(range(len(free)), key=lambda index: (free[index], index))


# -- CPU and GPUs together


@dataclass(frozen=True, slots=True)
class BestFitArguments:
    """How the best fit is measured."""

    weight: int = arg("bestfit.weight", 1, _WEIGHT, check=at_least(0))
    published: bool = arg("bestfit.published", False, _PUBLISHED)
    resource: str = arg("bestfit.resource", names.NVIDIA_GPU, _RESOURCE)


@dataclass(frozen=True, slots=True)
class DotProductArguments:
    """How the dot product is measured."""

    weight: int = arg("dotprod.weight", 1, _WEIGHT, check=at_least(0))
    published: bool = arg("dotprod.published", False, _PUBLISHED)
    resource: str = arg("dotprod.resource", names.NVIDIA_GPU, _RESOURCE)


class _MeasuredScore(_GpuScore):
    """A score of what is free as a part of the largest node."""

    def _sizes(self) -> tuple[float, float]:
        if self.arguments.published:
            return PUBLISHED_CPU, PUBLISHED_GPUS * WHOLE
        gpus = self._gpus
        return max(int(gpus.cpu_sizes.max(initial=0)), 1), WHOLE * max(int(gpus.count.max(initial=0)), 1)

    def _finished(self, points: Floats) -> Floats:
        return np.floor(points) if self.arguments.published else np.round(points, 6)


class BestFit(_MeasuredScore):
    """Prefers nodes on which the task leaves the least CPU and GPUs."""

    name = "bestfit"
    Arguments = BestFitArguments
    arguments: BestFitArguments

    def _points(self, demand: GpuDemand, asked: Ints) -> Floats:
        cpu, gpu = self._sizes()
        left_cpu = (self._gpus.cpu - demand.cpu) / cpu
        left_gpu = (self._gpus.free.sum(axis=1) - demand.gpus * asked) / gpu
        return self._finished(100 * (1 - left_cpu / 2 - left_gpu / 2))


class DotProduct(_MeasuredScore):
    """Prefers nodes whose free CPU and GPUs are least aligned with the task's request."""

    name = "dotprod"
    Arguments = DotProductArguments
    arguments: DotProductArguments

    def _points(self, demand: GpuDemand, asked: Ints) -> Floats:
        cpu, gpu = self._sizes()
        by_cpu = self._gpus.cpu / cpu * (demand.cpu / cpu)
        by_gpu = self._gpus.free.sum(axis=1) / gpu * (demand.gpus * asked / gpu)
        return self._finished(100 * (1 - (by_cpu + by_gpu) / 2))


# -- GPUs alone


@dataclass(frozen=True, slots=True)
class PackingArguments:
    """How much packing counts."""

    weight: int = arg("gpu-packing.weight", 1, _WEIGHT, check=at_least(0))
    resource: str = arg("gpu-packing.resource", names.NVIDIA_GPU, _RESOURCE)


class GpuPacking(_GpuScore):
    """Prefers GPUs in use, then nodes in use, then the smallest idle node."""

    name = "gpu-packing"
    Arguments = PackingArguments
    arguments: PackingArguments

    def _points(self, demand: GpuDemand, asked: Ints) -> Floats:
        free, count = self._gpus.free, self._gpus.count
        if not demand.gpus:
            return np.zeros(len(free))
        fitting = np.sort(np.where(free >= asked[:, None], free, 2 * WHOLE), axis=1)[:, : demand.gpus]
        idle = (fitting == WHOLE).sum(axis=1)
        points = np.where(idle > 0, 50 - idle, 100 - fitting[:, 0] // 100)
        return np.where(free.sum(axis=1) == WHOLE * count, 33 - count, points).astype(float)


@dataclass(frozen=True, slots=True)
class ClusteringArguments:
    """How much clustering counts."""

    weight: int = arg("gpu-clustering.weight", 1, _WEIGHT, check=at_least(0))
    published: bool = arg("gpu-clustering.published", False, _PUBLISHED)
    resource: str = arg("gpu-clustering.resource", names.NVIDIA_GPU, _RESOURCE)


class GpuClustering(_MeasuredScore):
    """Prefers nodes with tasks of the same kind: sharing a GPU, or with as many whole GPUs."""

    name = "gpu-clustering"
    Arguments = ClusteringArguments
    arguments: ClusteringArguments

    def opening(self, session: Session, dirty: Dirty) -> None:
        super().opening(session, dirty)
        if dirty.everything or not hasattr(self, "_position"):
            self._position = -1
            self._kinds: dict[frozenset[int], int] = {}
            """Kinds that are on a node together, numbered."""

    def _follow(self) -> None:
        """Update the kinds of the tasks on nodes that changed."""
        changes, nodes = self._gpus.changes, self.session.cluster.columns.nodes
        changed = changes.since(self._position)
        if changed is None or len(self._kinds) > MAX_KINDS:
            self._kinds, changed = {}, set(range(len(nodes)))
            self._kinds_on = np.zeros(len(nodes), dtype=np.int64)
            self._memory = self._gpus.usual_memory()
        for row in changed:
            demands = {self._demands.of(task) for task in nodes[row].tasks}
            kinds = frozenset(map(self._kind, demands)) - {NO_GPU}
            self._kinds_on[row] = self._kinds.setdefault(kinds, len(self._kinds))
        self._position = changes.position

    def _kind(self, demand: GpuDemand) -> int:
        """The number of its whole GPUs, or that it requests parts."""
        if not demand.gpus:
            return NO_GPU
        return demand.gpus if demand.share_of(self._memory) == WHOLE else SHARED

    def _points(self, demand: GpuDemand, asked: Ints) -> Floats:
        if not demand.gpus:
            return np.zeros(len(self._gpus.cpu))
        self._follow()
        kind = self._kind(demand)
        base = [
            (75 if len(kinds) == 1 else 50) if kind in kinds else 0 if kinds else 25 for kinds in self._kinds
        ]
        size = self._sizes()[1]
        used = self._finished(25 * (size - self._gpus.free.sum(axis=1)) / size)
        points: Floats = used + np.array(base, dtype=float)[self._kinds_on]
        return points


# -- chance


@dataclass(frozen=True, slots=True)
class RandomArguments:
    """The random numbers."""

    weight: int = arg("random.weight", 1, _WEIGHT, check=at_least(0))
    seed: int = arg("random.seed", 0, "Seed of the choice, which also depends on the UID of the pod.")
    resource: str = arg("random.resource", names.NVIDIA_GPU, _RESOURCE)


class Random(_GpuScore):
    """Selects a feasible node and GPU at random, for comparisons."""

    name = "random"
    Arguments = RandomArguments
    arguments: RandomArguments

    def _version(self, task: Task) -> Hashable:
        return task.uid, self.session.cluster.columns.layout

    def _score(self, demand: GpuDemand, task: Task, nodes: Nodes) -> Column:
        return nodes.pick(self._draws(task, len(nodes.columns), 0))

    def _draws(self, task: Task, count: int, stream: int) -> Floats:
        """Numbers from 0 to 100 by seed, pod and place (SplitMix64)."""
        start = (self.arguments.seed << 33) ^ (zlib.crc32(task.uid.encode()) << 1) ^ stream
        with np.errstate(over="ignore"):
            state = np.arange(1, count + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
            state += _mixed(np.array([start % 2**64], dtype=np.uint64))
            numbers: Floats = _mixed(state) / 2**64 * 100
        return numbers

    def card_order(self, task: Task, node: Node, cards: NodeCards) -> Sequence[int] | None:
        """Cards in any order."""
        order: list[int] = np.argsort(self._draws(task, len(cards.cards), 1), kind="stable").tolist()
        return order


def _mixed(state: np.ndarray[tuple[int], np.dtype[np.uint64]]) -> np.ndarray[tuple[int], np.dtype[np.uint64]]:
    state = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    state = (state ^ (state >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return state ^ (state >> np.uint64(31))
