"""Pod affinity and anti-affinity, the pod's own and that of pods already there (spec 04 2.6)."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import TYPE_CHECKING

import numpy as np

from stromboli.api import names
from stromboli.engine.placement.node_functions import Check, Nodes
from stromboli.model.constraints.pod_affinity import (
    AffinityTerm,
    incoming_pod_term,
    matching_pods,
    pods_with_term,
    preferred_terms,
    required_affinity,
    required_anti_affinity,
)

if TYPE_CHECKING:
    from stromboli.api.types.meta import LabelSelector, Requirement
    from stromboli.api.types.pod import PodSpec
    from stromboli.model.cluster import Cluster
    from stromboli.model.constraints.pod_counts import PodCount
    from stromboli.model.node_columns import Bools, Columns
    from stromboli.model.task import Task


def pod_affinity_key(cluster: Cluster, task: Task) -> Hashable:
    """What the filter below reads of a task beyond its shape."""
    repelling = cluster.affinity_terms.required_matching(task.label_set)
    spec = task.shape.spec
    if spec.affinity is None or not (required_affinity(spec) or required_anti_affinity(spec)):
        return repelling or None
    return (repelling, task.namespace, _is_one_of_them(cluster, task))


def pod_affinity(cluster: Cluster, task: Task) -> PodAffinity | None:
    """The filter, if there is anything for it to do."""
    rule = PodAffinity(cluster, task)
    return rule if rule.near or rule.away or rule.repelling else None


class PodAffinity:
    """Near all that is required, away from what is shunned, and away from those that shun."""

    def __init__(self, cluster: Cluster, task: Task):
        spec, namespace = task.shape.spec, task.namespace
        self._cluster = cluster
        self.near = [incoming_pod_term(term, namespace) for term in required_affinity(spec)]
        self.away = [incoming_pod_term(term, namespace) for term in required_anti_affinity(spec)]
        self.repelling = cluster.affinity_terms.required_matching(task.label_set)
        self._may_be_first = _is_one_of_them(cluster, task)

    def version(self, task: Task) -> tuple[int, ...]:
        return tuple([tally.version for tally in self._tallies()])

    def _tallies(self) -> Iterator[PodCount]:
        if self.near:
            yield self._wanted_pods()
        for term in self.away:
            yield matching_pods(self._cluster, term.selector)
        for term in self.repelling:
            yield pods_with_term(self._cluster, term)

    def checks(self, task: Task, nodes: Nodes) -> Iterator[Check]:
        columns = nodes.columns
        if self.near:
            yield Check(nodes.pick(self._is_near(columns)), names.POD_AFFINITY_MISMATCH)
        if self.away:
            pairs = [(term, matching_pods(self._cluster, term.selector)) for term in self.away]
            alone = _nobody_around(columns, pairs)
            yield Check(nodes.pick(alone), names.POD_ANTI_AFFINITY_MISMATCH, curable=True)
        if self.repelling:
            pairs = [(term, pods_with_term(self._cluster, term)) for term in self.repelling]
            welcome = _nobody_around(columns, pairs)
            yield Check(nodes.pick(welcome), names.EXISTING_ANTI_AFFINITY, curable=True)

    def _wanted_pods(self) -> PodCount:
        """Pods that all required terms mean: only those count for any of them."""
        return matching_pods(self._cluster, *[term.selector for term in self.near])

    def _is_near(self, columns: Columns) -> Bools:
        """Around such a pod by every term; where there is none anywhere, the first of its kind may go anywhere."""
        pods = self._wanted_pods()
        near, placed = np.ones(len(columns), dtype=bool), np.ones(len(columns), dtype=bool)
        nobody = True
        for key in dict.fromkeys(term.topology_key for term in self.near):
            around = pods.in_domain_of_node(columns, key)
            near &= around > 0
            placed &= columns.label_codes(key)[0] >= 0
            nobody = nobody and not around.any()
        return placed if nobody and self._may_be_first else near


def _nobody_around(columns: Columns, pairs: list[tuple[AffinityTerm, PodCount]]) -> Bools:
    alone = np.ones(len(columns), dtype=bool)
    for term, pods in pairs:
        alone &= pods.in_domain_of_node(columns, term.topology_key) == 0
    return alone


def _is_one_of_them(cluster: Cluster, task: Task) -> bool:
    """Whether a pod is itself meant by all pod affinity that it requires."""
    terms = [incoming_pod_term(term, task.namespace) for term in required_affinity(task.shape.spec)]
    return bool(terms) and all(term.selector.matches(task.label_set, cluster.objects) for term in terms)


# -- terms that nobody can read


def unreadable_term(spec: PodSpec) -> str | None:
    """What is wrong with the first pod affinity term that makes no sense; an API server lets none in."""
    terms = [
        *required_affinity(spec),
        *required_anti_affinity(spec),
        *(term for term, _ in preferred_terms(spec)),
    ]
    for term in terms:
        for selector in (term.label_selector, term.namespace_selector):
            if problem := unreadable(selector):
                return problem
    return None


def unreadable(selector: LabelSelector | None) -> str | None:
    """What is wrong with a label selector, if anything."""
    expressions = selector.match_expressions if selector else ()
    return next((problem for one in expressions if (problem := _unreadable(one))), None)


def _unreadable(one: Requirement) -> str | None:
    match one.operator:
        case "In" | "NotIn":
            wrong = "" if one.values else "for 'in', 'notin' operators, values set can't be empty"
        case "Exists" | "DoesNotExist":
            wrong = "values set must be empty for exists and does not exist" if one.values else ""
        case _:
            return f'"{one.operator}" is not a valid label selector operator'
    return f"values: Invalid value: {list(one.values)}: {wrong}" if wrong else None
