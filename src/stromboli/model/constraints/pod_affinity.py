"""Pod affinity terms: which pods they select, and how many such pods each node runs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from stromboli.api.selectors import matches_labels
from stromboli.api.types.meta import LabelSelector

if TYPE_CHECKING:
    from stromboli.api.types.pod import PodAffinity, PodAffinityTerm, PodSpec
    from stromboli.model.cluster import Cluster
    from stromboli.model.constraints.pod_counts import PodCount
    from stromboli.model.lookup_objects import LookupObjects
    from stromboli.model.shape import LabelSet
    from stromboli.model.task import Task

_encoder = msgspec.msgpack.Encoder(order="sorted")
_EVERY_NAMESPACE = LabelSelector()


class PodSelector:
    """The pods that a term selects, by labels and namespaces; equal if they select alike."""

    __slots__ = ("_namespace_selector", "_namespaces", "_selector", "index_keys", "key")

    def __init__(
        self,
        selector: LabelSelector | None,
        namespaces: frozenset[str],
        namespace_selector: LabelSelector | None = None,
    ):
        self._selector = selector
        self._namespaces = namespaces
        self._namespace_selector = namespace_selector
        self.key = _encoder.encode((selector, sorted(namespaces), namespace_selector))
        self.index_keys = index_keys(selector)

    def matches(self, label_set: LabelSet, objects: LookupObjects) -> bool:
        return self._matches_namespace(label_set.namespace, objects) and matches_labels(
            self._selector, label_set.labels
        )

    def _matches_namespace(self, namespace: str, objects: LookupObjects) -> bool:
        if namespace in self._namespaces:
            return True
        if self._namespace_selector is None:
            return False
        known = objects.namespaces.get(namespace)
        return matches_labels(self._namespace_selector, known.metadata.labels if known else {})

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PodSelector) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)


class AffinityTerm(NamedTuple):
    """Selected pods, the topology domain around each of them, and the weight of being in it (0: required)."""

    selector: PodSelector
    topology_key: str
    weight: int = 0


def index_keys(selector: LabelSelector | None) -> tuple[tuple[str, str], ...]:
    """Label pairs of which every matching pod has at least one; empty where there are no such pairs."""
    if selector is None:
        return ()
    if selector.match_labels:
        return (min(selector.match_labels.items()),)
    for requirement in selector.match_expressions:
        if requirement.operator == "In":
            return tuple((requirement.key, value) for value in dict.fromkeys(requirement.values))
    return ()


# -- the terms of a pod


def required_affinity(spec: PodSpec) -> tuple[PodAffinityTerm, ...]:
    """Required pod affinity."""
    affinity = _affinity(spec)
    return affinity.required if affinity else ()


def required_anti_affinity(spec: PodSpec) -> tuple[PodAffinityTerm, ...]:
    """Required pod anti-affinity."""
    anti_affinity = _anti_affinity(spec)
    return anti_affinity.required if anti_affinity else ()


def preferred_terms(spec: PodSpec) -> Iterator[tuple[PodAffinityTerm, int]]:
    """Preferred terms with their weight: above zero for affinity, below for anti-affinity."""
    for affinity, sign in ((_affinity(spec), 1), (_anti_affinity(spec), -1)):
        for preferred in affinity.preferred if affinity else ():
            yield preferred.term, sign * preferred.weight


def _affinity(spec: PodSpec) -> PodAffinity | None:
    return spec.affinity.pod_affinity if spec.affinity else None


def _anti_affinity(spec: PodSpec) -> PodAffinity | None:
    return spec.affinity.pod_anti_affinity if spec.affinity else None


def existing_pod_term(term: PodAffinityTerm, namespace: str) -> AffinityTerm:
    """A term of a pod that runs already: without namespaces it selects in the pod's own."""
    return AffinityTerm(
        PodSelector(term.label_selector, _namespaces(term, namespace), term.namespace_selector),
        term.topology_key,
    )


def incoming_pod_term(term: PodAffinityTerm, namespace: str, weight: int = 0) -> AffinityTerm:
    """A term of the pod that is to be scheduled."""
    selector = term.namespace_selector
    if matches_labels(selector, {}):
        selector = (
            _EVERY_NAMESPACE  # quirk: spec 04 2.6, what matches no labels at all matches every namespace
        )
    return AffinityTerm(
        PodSelector(term.label_selector, _namespaces(term, namespace), selector), term.topology_key, weight
    )


def _namespaces(term: PodAffinityTerm, namespace: str) -> frozenset[str]:
    if not term.namespaces and term.namespace_selector is None:
        return frozenset({namespace})
    return frozenset(term.namespaces)


# -- counting


def matching_pods(cluster: Cluster, *selectors: PodSelector) -> PodCount:
    """How many pods on each node match all of these selectors."""
    objects = cluster.objects

    def counted(task: Task) -> bool:
        return all(selector.matches(task.label_set, objects) for selector in selectors)

    keys = next((selector.index_keys for selector in selectors if selector.index_keys), ())
    return cluster.pod_counts.get(("matching", selectors), counted, keys)


def pods_with_term(cluster: Cluster, term: AffinityTerm) -> PodCount:
    """How many pods on each node have a term themselves."""
    terms = cluster.affinity_terms

    def counted(task: Task) -> bool:
        return term in terms.of(task)

    return cluster.pod_counts.get(("with term", term), counted, (term,))
