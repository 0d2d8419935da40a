"""DoNotSchedule spread constraints: no domain may exceed the emptiest one by more than maxSkew (spec 04 2.9)."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from stromboli.api import names
from stromboli.api.selectors import matches_labels
from stromboli.engine.placement.node_functions import Check, Nodes
from stromboli.model.constraints.topology_spread import (
    CountedDomains,
    CountedNodes,
    Spread,
    SpreadPods,
    label_values,
    spreads,
)

if TYPE_CHECKING:
    from stromboli.model.cluster import Cluster
    from stromboli.model.node_columns import Bools, Ints
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


class _Constraint(NamedTuple):
    """A constraint with what follows from node objects."""

    spread: Spread
    adds: int
    """How many pods that count the task itself is."""
    codes: Ints
    """Of every node, its domain; -1: it has none."""
    keyed: Bools
    domains: CountedDomains
    are_enough: bool
    """Whether there are as many domains as the constraint wants."""


_LABEL_NODES = "label the nodes with the topologyKey of its topologySpreadConstraints"
_RAISE_SKEW = "its topologySpreadConstraints exclude every node: add nodes or raise maxSkew"


class Spreading:
    """For each constraint: the node has the label, and one more pod there stays within the skew."""

    def __init__(self, cluster: Cluster, task: Task, constraints: list[Spread]):
        self._cluster = cluster
        self._spreads = constraints
        self._labels = task.label_set.labels
        self._pods = [SpreadPods(cluster, task.namespace, each.selector) for each in constraints]
        self._counted_nodes = CountedNodes(cluster, task.shape.spec, constraints, all_keys=True)
        self._objects = -1
        self._known: list[_Constraint] = []

    def version(self, task: Task) -> tuple[int, ...]:
        return tuple([pods.count().version for pods in self._pods])

    def checks(self, task: Task, nodes: Nodes) -> Iterator[Check]:
        for constraint in self._constraints():
            yield Check(nodes.pick(constraint.keyed), names.SPREAD_MISSING_LABEL, remedy=_LABEL_NODES)
            within = nodes.pick(_within_skew(constraint))
            yield Check(within, names.SPREAD_MISMATCH, True, remedy=_RAISE_SKEW)

    def _constraints(self) -> list[_Constraint]:
        """All of them, prepared again only when node objects change."""
        objects = self._cluster.columns.objects
        if objects != self._objects:
            parts = zip(self._spreads, self._pods, self._counted_nodes(), strict=True)
            self._known = [self._prepared(*each) for each in parts]
            self._objects = objects
        return self._known

    def _prepared(self, spread: Spread, pods: SpreadPods, counted: Bools) -> _Constraint:
        codes, values = self._cluster.columns.label_codes(spread.topology_key)
        keyed = codes >= 0
        domains = CountedDomains(pods, np.where(keyed, codes, 0), len(values), counted & keyed)
        enough = int(np.count_nonzero(domains.present)) >= max(spread.min_domains, 1)
        adds = int(matches_labels(spread.selector, self._labels))
        return _Constraint(spread, adds, codes, keyed, domains, enough)


def _within_skew(constraint: _Constraint) -> Bools:
    domains = constraint.domains
    counts = domains.counts()
    least = int(counts[domains.present].min()) if constraint.are_enough else 0
    within: Bools = np.append(counts + constraint.adds - least <= constraint.spread.max_skew, False)
    per_node: Bools = within[constraint.codes]
    return per_node
