"""DoNotSchedule spread constraints: no domain may exceed the emptiest one by more than maxSkew (spec 04 2.9)."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import TYPE_CHECKING

import numpy as np

from stromboli.api import names
from stromboli.api.selectors import matches_labels
from stromboli.engine.placement.node_functions import Check, Nodes
from stromboli.model.constraints.topology_spread import (
    CountedNodes,
    Spread,
    domain_counts,
    label_values,
    spread_pods,
    spreads,
)

if TYPE_CHECKING:
    from stromboli.model.cluster import Cluster
    from stromboli.model.node_columns import Bools, Columns
    from stromboli.model.task import Task


def spreading_key(task: Task) -> Hashable:
    """What the filter below reads of a task beyond its shape."""
    spec, labels = task.shape.spec, task.label_set.labels
    if not spec.topology_spread_constraints:
        return None
    hard = spreads(spec, labels, names.DO_NOT_SCHEDULE)
    if not hard:
        return None
    self_matches = tuple(matches_labels(constraint.selector, labels) for constraint in hard)
    return (task.namespace, self_matches, label_values(spec, labels, names.DO_NOT_SCHEDULE))


def spreading(cluster: Cluster, task: Task) -> Spreading | None:
    """The filter of a task, if it has such constraints."""
    hard = spreads(task.shape.spec, task.label_set.labels, names.DO_NOT_SCHEDULE)
    return Spreading(cluster, task, hard) if hard else None


class Spreading:
    """For each constraint: the node has the label, and one more pod there stays within the skew."""

    def __init__(self, cluster: Cluster, task: Task, constraints: list[Spread]):
        self._cluster = cluster
        self._namespace = task.namespace
        self._constraints = constraints
        labels = task.label_set.labels
        self._self_matches = [int(matches_labels(constraint.selector, labels)) for constraint in constraints]
        self._counted_nodes = CountedNodes(cluster, task.shape.spec, constraints, all_keys=True)

    def version(self, task: Task) -> tuple[int, ...]:
        selectors = (constraint.selector for constraint in self._constraints)
        return tuple([spread_pods(self._cluster, self._namespace, each).version for each in selectors])

    def checks(self, task: Task, nodes: Nodes) -> Iterator[Check]:
        columns = nodes.columns
        for constraint, adds, mask in zip(
            self._constraints, self._self_matches, self._counted_nodes(), strict=True
        ):
            keyed = columns.label_codes(constraint.topology_key)[0] >= 0
            yield Check(nodes.pick(keyed), names.SPREAD_MISSING_LABEL)
            yield Check(
                nodes.pick(self._within_skew(columns, constraint, adds, mask)),
                names.SPREAD_MISMATCH,
                curable=True,
            )

    def _within_skew(self, columns: Columns, constraint: Spread, adds: int, mask: Bools) -> Bools:
        pods = spread_pods(self._cluster, self._namespace, constraint.selector)
        counts, present = domain_counts(columns, pods, constraint.topology_key, mask)
        enough = np.count_nonzero(present) >= max(constraint.min_domains, 1)
        least = int(counts[present].min()) if enough else 0
        within: Bools = np.append(counts + adds - least <= constraint.max_skew, False)
        per_node: Bools = within[columns.label_codes(constraint.topology_key)[0]]
        return per_node
