"""Preferred pod affinity and anti-affinity, of the incoming pod and of existing pods (spec 04 3.7)."""

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
    existing = cluster.affinity_terms.preferred_matching(task.label_set)
    spec = task.shape.spec
    own = spec.affinity is not None and any(preferred_terms(spec))
    return (existing, task.namespace) if own else existing or None


def pod_preferences(cluster: Cluster, task: Task) -> PodPreferences | None:
    """The score of a task, if any term concerns it."""
    score = PodPreferences(cluster, task)
    return score if score.own_terms or score.existing_terms else None


class PodPreferences:
    """The sum of the weights of all terms, once for each matching pod in the node's domain."""

    def __init__(self, cluster: Cluster, task: Task):
        self._cluster = cluster
        self.own_terms = [
            incoming_pod_term(term, task.namespace, weight)
            for term, weight in preferred_terms(task.shape.spec)
        ]
        self.existing_terms = cluster.affinity_terms.preferred_matching(task.label_set)

    def version(self, task: Task) -> tuple[int, ...]:
        return tuple([pods.version for _, pods in self._pods()])

    def score(self, task: Task, nodes: Nodes) -> Column:
        total = np.zeros(len(nodes.columns))  # floats: weights times pods may exceed 64 bits
        for term, pods in self._pods():
            total += term.weight * pods.in_domain_of_node(nodes.columns, term.topology_key)
        return nodes.pick(total)

    def _pods(self) -> Iterator[tuple[AffinityTerm, PodCount]]:
        """Pods that match the pod's own terms, and pods with terms that match it; required affinity adds nothing."""
        for term in self.own_terms:
            yield term, matching_pods(self._cluster, term.selector)
        for term in self.existing_terms:
            yield term, pods_with_term(self._cluster, term)
