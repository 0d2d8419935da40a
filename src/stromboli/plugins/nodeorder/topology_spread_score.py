"""ScheduleAnyway spread constraints, the pod's own or the default ones (spec 04 3.8)."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable
from typing import TYPE_CHECKING, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from stromboli.api import names
from stromboli.model.constraints.topology_spread import (
    CountedDomains,
    CountedNodes,
    Spread,
    SpreadPods,
    label_values,
    spreads,
)

if TYPE_CHECKING:
    from stromboli.api.types.meta import LabelSelector
    from stromboli.engine.placement.node_functions import Column, Nodes
    from stromboli.model.cluster import Cluster
    from stromboli.model.node_columns import Bools, Columns, Ints
    from stromboli.model.task import Task

Floats = NDArray[np.float64]
_encoder = msgspec.msgpack.Encoder(order="sorted")
SYSTEM_DEFAULTS = ((names.HOSTNAME, 3), (names.ZONE, 5))
EXACT = 2.0**52
"""Whole numbers up to this are exact as floats, and a hundred times as much fits 64 bits."""
MANY = 4096
"""If there may be more combinations of counts than this, those that there are not are left out."""
MISSING = -1
"""Among counts: the node does not have the topology key."""


def soft_spreading_key(task: Task, siblings: LabelSelector | None) -> Hashable:
    """What the score below reads of a task beyond its shape."""
    spec, labels = task.shape.spec, task.label_set.labels
    if spec.topology_spread_constraints:
        return (task.namespace, label_values(spec, labels, names.SCHEDULE_ANYWAY))
    return (task.namespace, _encoder.encode(siblings)) if siblings else None


def soft_spreading(cluster: Cluster, task: Task, siblings: LabelSelector | None) -> SoftSpreading | None:
    """The score of a task, if it has constraints; without its own it is spread among its siblings."""
    spec = task.shape.spec
    if spec.topology_spread_constraints:
        soft = spreads(spec, task.label_set.labels, names.SCHEDULE_ANYWAY)
    else:
        soft = [Spread(key, skew, siblings) for key, skew in SYSTEM_DEFAULTS] if siblings else []
    return SoftSpreading(cluster, task, soft) if soft else None


class SoftSpreading:
    """Fewer matching pods in the node's domains are better; scores are normalised over the candidates.

    Nodes with the same counts get the same score, and there are few combinations of counts, so scores are computed by
    combination.
    """

    def __init__(self, cluster: Cluster, task: Task, constraints: list[Spread]):
        spec = task.shape.spec
        self._cluster = cluster
        self._constraints = constraints
        self._pods = [SpreadPods(cluster, task.namespace, each.selector) for each in constraints]
        self._strict = bool(spec.topology_spread_constraints)
        """Whether nodes that lack a key are left out, as they are unless the constraints are the default ones."""
        self._counted_nodes = CountedNodes(cluster, spec, constraints, all_keys=self._strict)
        self._objects = -1
        self._keyed: list[Bools] = []
        """By constraint, which nodes have its key."""
        self._domains: list[CountedDomains] = []
        self._eligible: Bools = np.zeros(0, dtype=bool)
        """The nodes that lack no key, or all where that does not matter."""
        self._state: Hashable = None
        self._combinations = Combinations(np.zeros(0, dtype=np.int64), [])
        self._kept: Bools = np.zeros(0, dtype=bool)
        self._sizes: list[int] = []
        """By constraint, how many domains there are to choose from, among the candidates kept last."""

    def version(self, task: Task) -> tuple[int, ...]:
        return tuple([pods.count().version for pods in self._pods])

    def score(self, task: Task, nodes: Nodes) -> Column:
        """A number that differs wherever any count does; `finish` computes the score once there are candidates."""
        return nodes.pick(self._counts(task).of_nodes)

    def _counts(self, task: Task) -> Combinations:
        """Per constraint and node, how many pods count there; MISSING where the node lacks the key."""
        columns = self._cluster.columns
        state = (self.version(task), columns.objects)
        if state != self._state:
            if columns.objects != self._objects:
                self._prepare(columns)
            parts = zip(self._constraints, self._pods, self._keyed, self._domains, strict=True)
            self._combinations = combinations(len(columns), (_count(*each) for each in parts))
            self._state = state
        return self._combinations

    def _prepare(self, columns: Columns) -> None:
        """What follows from node objects alone."""
        self._keyed, self._domains, self._kept = [], [], np.zeros(0, dtype=bool)
        self._eligible = np.ones(len(columns), dtype=bool)
        for constraint, pods, counted in zip(
            self._constraints, self._pods, self._counted_nodes(), strict=True
        ):
            codes, values = columns.label_codes(constraint.topology_key)
            keyed = codes >= 0
            # nodes without the label share the domain of the empty value
            codes = np.where(keyed, codes, values.get("", len(values)))
            self._keyed.append(keyed)
            self._domains.append(CountedDomains(pods, codes, len(values) + 1, counted))
            if self._strict:
                self._eligible &= keyed
        self._objects = columns.objects

    def finish(self, task: Task, nodes: Nodes, raw: Column, candidates: Column) -> Column:
        index, counts = self._counts(task)
        kept: Bools = candidates & self._eligible
        if not kept.any():
            return nodes.zeros()
        total = np.zeros(len(counts[0]))
        for constraint, size, count in zip(self._constraints, self._domain_sizes(kept), counts, strict=True):
            weight = math.log(size + 2)
            total += np.where(count == MISSING, 0.0, count * weight + (constraint.max_skew - 1))
        good = _fewer_is_better(_rounded(total), index, kept)
        return good if self._eligible.all() else np.where(kept, good, 0)

    def _domain_sizes(self, kept: Bools) -> list[int]:
        """How many domains there are to choose from; mostly the candidates are those of the last call."""
        if not np.array_equal(kept, self._kept):
            self._kept = kept
            self._sizes = [
                int(np.count_nonzero(kept))
                if constraint.topology_key == names.HOSTNAME
                else int(np.count_nonzero(np.bincount(domains.codes[kept], minlength=domains.size)))
                for constraint, domains in zip(self._constraints, self._domains, strict=True)
            ]
        return self._sizes


def _count(constraint: Spread, pods: SpreadPods, keyed: Bools, domains: CountedDomains) -> Ints:
    hostname = constraint.topology_key == names.HOSTNAME
    per_node = pods.count().by_node if hostname else domains.counts()[domains.codes]
    return per_node if keyed.all() else np.where(keyed, per_node, MISSING)


class Combinations(NamedTuple):
    """Which of some combinations of numbers every node has."""

    of_nodes: Ints
    """By node, the number of its combination."""
    columns: list[Ints]
    """The numbers, each column by combination."""


def combinations(nodes: int, counts: Iterable[Ints]) -> Combinations:
    """The combinations of some columns of counts from MISSING on."""
    index, many = np.zeros(nodes, dtype=np.int64), 1
    columns: list[Ints] = []
    for column in counts:
        size = int(column.max(initial=0)) + 1 - MISSING
        index *= size
        index += column
        index -= MISSING
        values = np.arange(many * size)
        if len(values) > MANY:
            values, index = np.unique(index, return_inverse=True)
        columns = [*(known[values // size] for known in columns), values % size + MISSING]
        many = len(values)
    return Combinations(index, columns)


def _rounded(scores: Column) -> Ints:
    """To whole numbers, halves up."""
    whole = np.floor(scores)
    rounded: Column = np.clip(whole + (scores - whole >= 0.5), -EXACT, EXACT)
    return rounded.astype(np.int64)


def _fewer_is_better(scores: Ints, index: Ints, kept: Bools) -> Column:
    """100 for the lowest that is kept. Scores are by combination."""
    there = scores[np.flatnonzero(np.bincount(index, weights=kept, minlength=len(scores)))]
    least, most = int(there.min()), max(0, int(there.max()))
    good = 100 * (most + least - scores) // most if most else np.full(len(scores), 100)
    per_node: Floats = good.astype(np.float64)[index]
    return per_node
