"""ScheduleAnyway spread constraints, the pod's own or the default ones (spec 04 3.8)."""

from __future__ import annotations

import math
from collections.abc import Hashable
from typing import TYPE_CHECKING

import msgspec
import numpy as np
from numpy.typing import NDArray

from stromboli.api import names
from stromboli.model.constraints.topology_spread import (
    CountedNodes,
    Spread,
    label_values,
    spread_pods,
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
    """Fewer matching pods in the node's domains are better; scores are normalised over the candidates."""

    def __init__(self, cluster: Cluster, task: Task, constraints: list[Spread]):
        spec = task.shape.spec
        self._cluster = cluster
        self._namespace = task.namespace
        self._constraints = constraints
        self._strict = bool(spec.topology_spread_constraints)
        """Whether nodes that lack a key are left out, as they are unless the constraints are the default ones."""
        self._counted_nodes = CountedNodes(cluster, spec, constraints, all_keys=self._strict)
        self._state: Hashable = None
        self._table: Floats = np.zeros((len(constraints), 0))

    def version(self, task: Task) -> tuple[int, ...]:
        selectors = (constraint.selector for constraint in self._constraints)
        return tuple([spread_pods(self._cluster, self._namespace, each).version for each in selectors])

    def score(self, task: Task, nodes: Nodes) -> Column:
        """A number that differs wherever any count does; `finish` computes the score once there are candidates."""
        raw = np.zeros(len(nodes.columns))
        for counts in self._counts(task):
            base = counts.max(initial=0) + 2
            if raw.max(initial=0) * base > EXACT:
                raw = np.unique(raw, return_inverse=True)[1].astype(np.float64)
            raw = raw * base + (counts - MISSING)
        return nodes.pick(raw)

    def _counts(self, task: Task) -> Floats:
        """Per constraint and node, how many pods count there; MISSING where the node lacks the key."""
        columns = self._cluster.columns
        state = (self.version(task), columns.objects)
        if state != self._state:
            rows = [
                self._count(columns, *each)
                for each in zip(self._constraints, self._counted_nodes(), strict=True)
            ]
            self._state, self._table = state, np.array(rows, dtype=np.float64)
        return self._table

    def _count(self, columns: Columns, constraint: Spread, mask: Bools) -> Column:
        pods = spread_pods(self._cluster, self._namespace, constraint.selector)
        keyed = columns.label_codes(constraint.topology_key)[0] >= 0
        if constraint.topology_key == names.HOSTNAME:
            return np.where(keyed, pods.by_node, MISSING)
        codes, size = self._domains(columns, constraint.topology_key)
        counts = np.bincount(codes[mask], weights=pods.by_node[mask], minlength=size)
        return np.where(keyed, counts[codes], MISSING)

    def _domains(self, columns: Columns, key: str) -> tuple[Ints, int]:
        """Every node's domain and how many there may be; nodes without the label share that of the empty value."""
        codes, values = columns.label_codes(key)
        return np.where(codes < 0, values.get("", len(values)), codes), len(values) + 1

    def finish(self, task: Task, nodes: Nodes, raw: Column, candidates: Column) -> Column:
        table = self._counts(task)
        missing = table == MISSING
        kept = candidates & ~missing.any(axis=0) if self._strict else candidates
        if not kept.any():
            return nodes.zeros()
        total = nodes.zeros()
        for constraint, counts, lacking in zip(self._constraints, table, missing, strict=True):
            weight = math.log(self._size(nodes.columns, constraint, kept) + 2)
            total += np.where(lacking, 0.0, counts * weight + (constraint.max_skew - 1))
        return _fewer_is_better(_rounded(total), kept)

    def _size(self, columns: Columns, constraint: Spread, kept: Bools) -> int:
        """How many domains there are to choose from."""
        if constraint.topology_key == names.HOSTNAME:
            return int(np.count_nonzero(kept))
        codes, size = self._domains(columns, constraint.topology_key)
        return int(np.count_nonzero(np.bincount(codes[kept], minlength=size)))


def _rounded(scores: Column) -> Ints:
    """To whole numbers, halves up."""
    whole = np.floor(scores)
    rounded: Column = np.clip(whole + (scores - whole >= 0.5), -EXACT, EXACT)
    return rounded.astype(np.int64)


def _fewer_is_better(scores: Ints, kept: Bools) -> Column:
    """100 for the lowest; a node that is left out gets nothing."""
    least, most = int(scores[kept].min()), max(0, int(scores[kept].max()))
    good = 100 * (most + least - scores) // most if most else 100
    return np.where(kept, good, 0)
