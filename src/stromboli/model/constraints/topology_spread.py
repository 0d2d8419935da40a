"""Topology spread constraints: the domains in which matching pods are counted, and the nodes that take part."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import msgspec
import numpy as np

from stromboli.api import names
from stromboli.api.selectors import matches_labels
from stromboli.api.types.meta import LabelSelector, Requirement
from stromboli.model.constraints.node_selection import matching_nodes, tolerable_nodes
from stromboli.model.constraints.pod_affinity import index_keys

if TYPE_CHECKING:
    from stromboli.api.types.pod import PodSpec, TopologySpreadConstraint
    from stromboli.model.cluster import Cluster
    from stromboli.model.constraints.pod_counts import PodCount
    from stromboli.model.node_columns import Bools, Ints
    from stromboli.model.task import Task

_encoder = msgspec.msgpack.Encoder(order="sorted")


class Spread(NamedTuple):
    """One constraint, with defaults and matchLabelKeys applied."""

    topology_key: str
    max_skew: int
    selector: LabelSelector | None
    min_domains: int = 1
    honours_affinity: bool = True
    honours_taints: bool = False


def spreads(spec: PodSpec, labels: Mapping[str, str], when: str) -> list[Spread]:
    """The constraints of a pod with this whenUnsatisfiable (DoNotSchedule or ScheduleAnyway)."""
    return [
        Spread(
            constraint.topology_key,
            constraint.max_skew,
            _complete_selector(constraint, labels),
            1 if constraint.min_domains is None else constraint.min_domains,
            constraint.node_affinity_policy != names.IGNORE,
            constraint.node_taints_policy == names.HONOR,
        )
        for constraint in spec.topology_spread_constraints
        if constraint.when_unsatisfiable == when
    ]


def label_values(spec: PodSpec, labels: Mapping[str, str], when: str) -> tuple[str | None, ...]:
    """The pod's own values of the matchLabelKeys of these constraints."""
    return tuple(
        labels.get(key)
        for constraint in spec.topology_spread_constraints
        if constraint.when_unsatisfiable == when
        for key in constraint.match_label_keys
    )


def _complete_selector(
    constraint: TopologySpreadConstraint, labels: Mapping[str, str]
) -> LabelSelector | None:
    """The selector with the pod's own values of matchLabelKeys added to it."""
    keys = [key for key in constraint.match_label_keys if key in labels]
    if not keys:
        return constraint.label_selector
    selector = constraint.label_selector or LabelSelector()
    same_values = (Requirement(key, "In", (labels[key],)) for key in keys)
    return LabelSelector(selector.match_labels, (*selector.match_expressions, *same_values))


def is_empty(selector: LabelSelector | None) -> bool:
    """Whether a selector exists and has no requirement; a missing one is not empty."""
    return selector is not None and not selector.match_labels and not selector.match_expressions


class SpreadPods:
    """The pods of a namespace that match a selector, terminating ones left out; an empty selector matches none."""

    def __init__(self, cluster: Cluster, namespace: str, selector: LabelSelector | None):
        self._cluster = cluster
        self._namespace = namespace
        self._selector = selector
        self._matches_none = is_empty(selector)
        self._key = ("spread", namespace, _encoder.encode(selector))
        self._index_keys = index_keys(selector)

    def count(self) -> PodCount:
        """How many of them are on each node."""
        return self._cluster.pod_counts.get(self._key, self._counted, self._index_keys)

    def _counted(self, task: Task) -> bool:
        label_set = task.label_set
        return (
            not self._matches_none
            and not task.terminating
            and label_set.namespace == self._namespace
            and matches_labels(self._selector, label_set.labels)
        )


class CountedDomains:
    """The domains of a topology key and their numbers of pods, updated node by node."""

    def __init__(self, pods: SpreadPods, codes: Ints, size: int, counted: Bools):
        self.codes = codes
        """Of every node, its domain."""
        self.size = size
        """The number of domains."""
        self.present: Bools = np.bincount(codes[counted], minlength=size) > 0
        """The domains that have a node that counts."""
        self._pods = pods
        self._counted = counted
        self._of: PodCount | None = None
        self._position = 0
        self._by_node: Ints = np.zeros(0, dtype=np.int64)
        """How many pods of each node are in the counts."""
        self._counts: Ints = np.zeros(0, dtype=np.int64)

    def counts(self) -> Ints:
        """How many pods each domain has."""
        pods = self._pods.count()
        rows = pods.changes.since(self._position) if pods is self._of else None
        if rows is None:
            self._of, self._by_node = pods, pods.by_node * self._counted
            self._counts = np.bincount(self.codes, weights=self._by_node, minlength=self.size).astype(
                np.int64
            )
        else:
            for row in rows:
                if self._counted[row]:
                    self._counts[self.codes[row]] += pods.by_node[row] - self._by_node[row]
                    self._by_node[row] = pods.by_node[row]
        self._position = pods.changes.position
        return self._counts


class CountedNodes:
    """The nodes that take part in each constraint, computed again only when node objects change."""

    def __init__(self, cluster: Cluster, spec: PodSpec, constraints: Sequence[Spread], all_keys: bool):
        self._cluster = cluster
        self._spec = spec
        self._constraints = constraints
        self._all_keys = all_keys
        self._objects = -1
        self._masks: list[Bools] = []

    def __call__(self) -> list[Bools]:
        """One mask per constraint."""
        objects = self._cluster.columns.objects
        if objects != self._objects:
            self._masks = list(self._count())
            self._objects = objects
        return self._masks

    def _count(self) -> Iterator[Bools]:
        columns = self._cluster.columns
        keyed = np.ones(len(columns), dtype=bool)
        if self._all_keys:
            for constraint in self._constraints:
                keyed &= columns.label_codes(constraint.topology_key)[0] >= 0
        for constraint in self._constraints:
            mask = keyed.copy()
            if constraint.honours_affinity:
                mask &= matching_nodes(columns, self._spec)
            if constraint.honours_taints:
                mask &= tolerable_nodes(columns, self._spec.tolerations)
            yield mask
