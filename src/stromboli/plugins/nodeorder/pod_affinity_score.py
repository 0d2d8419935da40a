"""Preferred pod affinity and anti-affinity, the pod's own and that of pods already there (spec 04 3.7)."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import TYPE_CHECKING

import numpy as np

from stromboli.model.constraints.pod_affinity import (
    incoming_pod_term,
    matching_pods,
    pods_with_term,
    preferred_terms,
)

if TYPE_CHECKING:
    from stromboli.engine.placement.node_functions import Column, Nodes
    from stromboli.model.cluster import Cluster
    from stromboli.model.constraints.pod_affinity import AffinityTerm
    from stromboli.model.constraints.pod_counts import PodCount
    from stromboli.model.task import Task


def preference_key(cluster: Cluster, task: Task) -> Hashable:
    """What the score below reads of a task beyond its shape."""
    preferring = cluster.affinity_terms.preferred_matching(task.label_set)
    spec = task.shape.spec
    own = spec.affinity is not None and any(preferred_terms(spec))
    return (preferring, task.namespace) if own else preferring or None


def pod_preferences(cluster: Cluster, task: Task) -> PodPreferences | None:
    """The score, if there is anything for it to do."""
    rule = PodPreferences(cluster, task)
    return rule if rule.wishes or rule.preferring else None


class PodPreferences:
    """The weights of all terms, by the domains that the pods in question lie in."""

    def __init__(self, cluster: Cluster, task: Task):
        self._cluster = cluster
        self.wishes = [
            incoming_pod_term(term, task.namespace, weight)
            for term, weight in preferred_terms(task.shape.spec)
        ]
        self.preferring = cluster.affinity_terms.preferred_matching(task.label_set)

    def version(self, task: Task) -> tuple[int, ...]:
        return tuple([pods.version for _, pods in self._pods()])

    def score(self, task: Task, nodes: Nodes) -> Column:
        total = np.zeros(len(nodes.columns), dtype=np.int64)
        for term, pods in self._pods():
            total += term.weight * pods.in_domain_of_node(nodes.columns, term.topology_key)
        return nodes.pick(total)

    def _pods(self) -> Iterator[tuple[AffinityTerm, PodCount]]:
        """Whom the pod wants or shuns, and those who want or shun it; required affinity adds nothing."""
        for term in self.wishes:
            yield term, matching_pods(self._cluster, term.selector)
        for term in self.preferring:
            yield term, pods_with_term(self._cluster, term)
