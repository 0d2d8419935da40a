"""Topology spread constraints: the domains in which matching pods are counted, and the nodes that take part."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import msgspec
import numpy as np

from stromboli.api import names
from stromboli.api.selectors import matches_labels
from stromboli.api.types.meta import LabelSelector, Requirement
from stromboli.model.constraints.node_selection import matching_nodes
from stromboli.model.constraints.pod_affinity import index_keys
from stromboli.model.constraints.taints import tolerable_nodes

if TYPE_CHECKING:
    from stromboli.api.types.pod import PodSpec, TopologySpreadConstraint
    from stromboli.model.cluster import Cluster
    from stromboli.model.constraints.pod_counts import PodCount
    from stromboli.model.node_columns import Bools, Columns, Ints
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
    """Whether a selector is there and has no requirement; a missing one is not empty."""
    return selector is not None and not selector.match_labels and not selector.match_expressions


def spread_pods(cluster: Cluster, namespace: str, selector: LabelSelector | None) -> PodCount:
    """How many pods of a namespace on each node match, without terminating ones; an empty selector matches none."""
    matches_none = is_empty(selector)

    def counted(task: Task) -> bool:
        label_set = task.label_set
        return (
            not matches_none
            and not task.terminating
            and label_set.namespace == namespace
            and matches_labels(selector, label_set.labels)
        )

    key = ("spread", namespace, _encoder.encode(selector))
    return cluster.pod_counts.get(key, counted, index_keys(selector))


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


def domain_counts(columns: Columns, pods: PodCount, key: str, mask: Bools) -> tuple[Ints, Bools]:
    """Per domain of a topology key: the number of pods on nodes of the mask, and whether it has such a node."""
    codes, values = columns.label_codes(key)
    inside = mask & (codes >= 0)
    where = codes[inside]
    counts = np.bincount(where, weights=pods.by_node[inside], minlength=len(values)).astype(np.int64)
    return counts, np.bincount(where, minlength=len(values)) > 0
