"""Topology spread constraints: over which domains matching pods are counted, and on which nodes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import msgspec
import numpy as np

from stromboli.api import names
from stromboli.api.selectors import matches_labels
from stromboli.api.types.meta import LabelSelector, Requirement
from stromboli.model.constraints.node_selection import wanted_nodes
from stromboli.model.constraints.pod_affinity import label_marks
from stromboli.model.constraints.taints import tolerable_nodes

if TYPE_CHECKING:
    from stromboli.api.types.pod import PodSpec, TopologySpreadConstraint
    from stromboli.model.cluster import Cluster
    from stromboli.model.constraints.pod_tallies import Tally
    from stromboli.model.node_columns import Bools, Columns, Ints
    from stromboli.model.task import Task

_encoder = msgspec.msgpack.Encoder(order="sorted")


class Spread(NamedTuple):
    """One constraint, with its defaults and its whole selector."""

    topology_key: str
    max_skew: int
    selector: LabelSelector | None
    min_domains: int = 1
    honours_affinity: bool = True
    honours_taints: bool = False


def spreads(spec: PodSpec, labels: Mapping[str, str], when: str) -> list[Spread]:
    """The constraints of a pod that apply when they cannot be met (DoNotSchedule) or anyway (ScheduleAnyway)."""
    return [
        Spread(
            one.topology_key,
            one.max_skew,
            _whole_selector(one, labels),
            1 if one.min_domains is None else one.min_domains,
            one.node_affinity_policy != names.IGNORE,
            one.node_taints_policy == names.HONOR,
        )
        for one in spec.topology_spread_constraints
        if one.when_unsatisfiable == when
    ]


def label_values(spec: PodSpec, labels: Mapping[str, str], when: str) -> tuple[str | None, ...]:
    """What the constraints take over from the pod's own labels."""
    return tuple(
        labels.get(key)
        for one in spec.topology_spread_constraints
        if one.when_unsatisfiable == when
        for key in one.match_label_keys
    )


def _whole_selector(one: TopologySpreadConstraint, labels: Mapping[str, str]) -> LabelSelector | None:
    """The selector with the pod's own values of matchLabelKeys added to it."""
    same = tuple(Requirement(key, "In", (labels[key],)) for key in one.match_label_keys if key in labels)
    if not same:
        return one.label_selector
    given = one.label_selector or LabelSelector()
    return LabelSelector(given.match_labels, (*given.match_expressions, *same))


def is_empty(selector: LabelSelector | None) -> bool:
    """Whether a selector says nothing; one that is missing does not even say that."""
    return selector is not None and not selector.match_labels and not selector.match_expressions


def spread_pods(cluster: Cluster, namespace: str, selector: LabelSelector | None) -> Tally:
    """How many pods of a namespace on each node match, those on their way out aside; an empty selector counts none."""
    nobody = is_empty(selector)

    def counts(task: Task) -> bool:
        label_set = task.label_set
        return (
            not nobody
            and not task.dying
            and label_set.namespace == namespace
            and matches_labels(selector, label_set.labels)
        )

    key = ("spread", namespace, _encoder.encode(selector))
    return cluster.tallies.get(key, counts, label_marks(selector))


class CountedNodes:
    """The nodes on which each constraint counts, worked out again only when node objects change."""

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
            for one in self._constraints:
                keyed &= columns.label_codes(one.topology_key)[0] >= 0
        for one in self._constraints:
            mask = keyed.copy()
            if one.honours_affinity:
                mask &= wanted_nodes(self._cluster, self._spec)
            if one.honours_taints:
                mask &= tolerable_nodes(columns, self._spec.tolerations)
            yield mask


def domain_counts(columns: Columns, tally: Tally, key: str, mask: Bools) -> tuple[Ints, Bools]:
    """Per domain of a topology key, how many are counted on the nodes of the mask; and whether it has such a node."""
    codes, values = columns.label_codes(key)
    inside = mask & (codes >= 0)
    where = codes[inside]
    counts = np.bincount(where, weights=tally.by_node[inside], minlength=len(values)).astype(np.int64)
    return counts, np.bincount(where, minlength=len(values)) > 0
