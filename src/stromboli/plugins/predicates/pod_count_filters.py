"""Filters that count matching pods by domain: required pod (anti-)affinity and topology spread (spec 04 2.6, 2.9)."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from stromboli.api import names
from stromboli.api.selectors import matches_labels
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
from stromboli.model.constraints.topology_spread import (
    CountedDomains,
    CountedNodes,
    Spread,
    SpreadPods,
    label_values,
    spreads,
)

if TYPE_CHECKING:
    from stromboli.api.types.meta import LabelSelector, Requirement
    from stromboli.api.types.pod import PodSpec
    from stromboli.model.cluster import Cluster
    from stromboli.model.constraints.pod_counts import PodCount
    from stromboli.model.node_columns import Bools, Columns, Ints
    from stromboli.model.task import Task


# -- pod affinity and anti-affinity, of the incoming pod and of existing pods (spec 04 2.6)


_UNMET = "no node satisfies its podAffinity"
_EXCLUDES = "its podAntiAffinity excludes every node: add nodes or relax the rule"
_EXCLUDED = "the podAntiAffinity of running pods excludes it"


def pod_affinity_key(cluster: Cluster, task: Task) -> Hashable:
    """What the filter below reads of a task beyond its shape."""
    existing_anti_affinity = cluster.affinity_terms.required_matching(task.label_set)
    spec = task.shape.spec
    if spec.affinity is None or not (required_affinity(spec) or required_anti_affinity(spec)):
        return existing_anti_affinity or None
    return (existing_anti_affinity, task.namespace, _matches_own_affinity(cluster, task))


def pod_affinity(cluster: Cluster, task: Task) -> PodAffinity | None:
    """The filter of a task; none if no term concerns it."""
    filter = PodAffinity(cluster, task)
    return filter if filter.affinity or filter.anti_affinity or filter.existing_anti_affinity else None


class PodAffinity:
    """The pod's affinity, its anti-affinity, and the anti-affinity of existing pods against it."""

    def __init__(self, cluster: Cluster, task: Task):
        spec, namespace = task.shape.spec, task.namespace
        self._cluster = cluster
        self.affinity = [incoming_pod_term(term, namespace) for term in required_affinity(spec)]
        self.anti_affinity = [incoming_pod_term(term, namespace) for term in required_anti_affinity(spec)]
        self.existing_anti_affinity = cluster.affinity_terms.required_matching(task.label_set)
        self._may_be_first = _matches_own_affinity(cluster, task)

    def version(self, task: Task) -> tuple[int, ...]:
        return tuple([pods.version for pods in self._pod_counts()])

    def _pod_counts(self) -> Iterator[PodCount]:
        if self.affinity:
            yield self._affine_pods()
        for term in self.anti_affinity:
            yield matching_pods(self._cluster, term.selector)
        for term in self.existing_anti_affinity:
            yield pods_with_term(self._cluster, term)

    def checks(self, task: Task, nodes: Nodes) -> Iterator[Check]:
        columns = nodes.columns
        if self.affinity:
            yield Check(
                nodes.pick(self._satisfies_affinity(columns)), names.POD_AFFINITY_MISMATCH, remedy=_UNMET
            )
        if self.anti_affinity:
            pairs = [(term, matching_pods(self._cluster, term.selector)) for term in self.anti_affinity]
            free = _no_pods_in_domain(columns, pairs)
            yield Check(nodes.pick(free), names.POD_ANTI_AFFINITY_MISMATCH, True, remedy=_EXCLUDES)
        if self.existing_anti_affinity:
            pairs = [(term, pods_with_term(self._cluster, term)) for term in self.existing_anti_affinity]
            free = _no_pods_in_domain(columns, pairs)
            yield Check(nodes.pick(free), names.EXISTING_ANTI_AFFINITY, True, remedy=_EXCLUDED)

    def _affine_pods(self) -> PodCount:
        """Pods that match all required terms: other pods count for none of them."""
        return matching_pods(self._cluster, *[term.selector for term in self.affinity])

    def _satisfies_affinity(self, columns: Columns) -> Bools:
        """By every term a matching pod in the domain; if there is none anywhere, the first such pod may go anywhere."""
        pods = self._affine_pods()
        near, keyed = np.ones(len(columns), dtype=bool), np.ones(len(columns), dtype=bool)
        no_pods = True
        for key in dict.fromkeys(term.topology_key for term in self.affinity):
            in_domain = pods.in_domain_of_node(columns, key)
            near &= in_domain > 0
            keyed &= columns.label_codes(key)[0] >= 0
            no_pods = no_pods and not in_domain.any()
        return keyed if no_pods and self._may_be_first else near


def _no_pods_in_domain(columns: Columns, pairs: list[tuple[AffinityTerm, PodCount]]) -> Bools:
    free = np.ones(len(columns), dtype=bool)
    for term, pods in pairs:
        free &= pods.in_domain_of_node(columns, term.topology_key) == 0
    return free


def _matches_own_affinity(cluster: Cluster, task: Task) -> bool:
    """Whether a pod itself matches all pod affinity that it requires."""
    terms = [incoming_pod_term(term, task.namespace) for term in required_affinity(task.shape.spec)]
    return bool(terms) and all(term.selector.matches(task.label_set, cluster.objects) for term in terms)


# -- invalid terms


def invalid_term(spec: PodSpec) -> str | None:
    """The error of the first invalid pod affinity term; API servers refuse such pods."""
    terms = [
        *required_affinity(spec),
        *required_anti_affinity(spec),
        *(term for term, _ in preferred_terms(spec)),
    ]
    for term in terms:
        for selector in (term.label_selector, term.namespace_selector):
            if problem := selector_problem(selector):
                return problem
    return None


def selector_problem(selector: LabelSelector | None) -> str | None:
    """The error of a label selector; empty if it is valid."""
    expressions = selector.match_expressions if selector else ()
    return next((problem for each in expressions if (problem := _requirement_problem(each))), None)


def _requirement_problem(requirement: Requirement) -> str | None:
    match requirement.operator:
        case "In" | "NotIn":
            wrong = "" if requirement.values else "for 'in', 'notin' operators, values set can't be empty"
        case "Exists" | "DoesNotExist":
            wrong = "values set must be empty for exists and does not exist" if requirement.values else ""
        case _:
            return f'"{requirement.operator}" is not a valid label selector operator'
    return f"values: Invalid value: {list(requirement.values)}: {wrong}" if wrong else None


# -- DoNotSchedule spread constraints: no domain may exceed the emptiest one by more than maxSkew (spec 04 2.9)


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
    """What the task itself adds to the count: 1 or 0."""
    codes: Ints
    """The domain of every node; -1: none."""
    keyed: Bools
    domains: CountedDomains
    are_enough: bool
    """Whether there are as many domains as the constraint requires."""


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
