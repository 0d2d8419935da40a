"""Pod affinity: the pods that a term selects, how many of them each node runs, the tasks whose terms match a pod."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

import msgspec
import numpy as np

from stromboli.api.selectors import matches_labels
from stromboli.api.types.meta import LabelSelector

if TYPE_CHECKING:
    from stromboli.api.types.pod import PodAffinity, PodAffinityTerm, PodSpec
    from stromboli.model.cluster import Cluster
    from stromboli.model.constraints.pod_counts import PodCount
    from stromboli.model.lookup_objects import LookupObjects
    from stromboli.model.node_columns import Ints
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


def slots_apart(cluster: Cluster, tasks: Sequence[Task], slots: Ints) -> int:
    """How many of some tasks of one shape may run at a time, by their required anti-affinity to each other.

    `slots`: for how many of them each node has capacity.
    """
    most = int(slots.sum())
    for term in required_anti_affinity(tasks[0].shape.spec):
        selector, key, _ = existing_pod_term(term, tasks[0].namespace)
        if all(selector.matches(labels, cluster.objects) for labels in {task.label_set for task in tasks}):
            codes, _ = cluster.columns.label_codes(key)
            domains = np.unique(codes[(codes >= 0) & (slots > 0)])
            most = min(most, len(domains) + int(slots[codes < 0].sum()))
    return most


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


NO_TERMS: frozenset[AffinityTerm] = frozenset()


# -- an index of the terms of all tasks, to find those that match an incoming pod


CACHE_SIZE = 10_000
"""Label sets whose matching terms are cached at a time."""


class AffinityTerms:
    """Required anti-affinity and preferred (anti-)affinity terms that any task has, each once."""

    def __init__(self, objects: LookupObjects):
        self._objects = objects
        self._terms: dict[tuple[int, str], tuple[frozenset[AffinityTerm], list[int]]] = {}
        """Terms and number of tasks, by shape and namespace."""
        self._required = _TermIndex()
        self._preferred = _TermIndex()
        self._cache: dict[tuple[int, bool], frozenset[AffinityTerm]] = {}
        self._cache_version = -1

    def add(self, task: Task) -> None:
        if not _has_pod_affinity(task):
            return
        key = (task.shape.id, task.namespace)
        known = self._terms.get(key)
        if known is None:
            known = self._terms[key] = (_terms_of(task), [0])
            self._index(known[0], 1)
        known[1][0] += 1

    def remove(self, task: Task) -> None:
        if not _has_pod_affinity(task):
            return
        key = (task.shape.id, task.namespace)
        terms, count = self._terms[key]
        count[0] -= 1
        if not count[0]:
            del self._terms[key]
            self._index(terms, -1)

    def of(self, task: Task) -> frozenset[AffinityTerm]:
        """The terms of a task."""
        if not _has_pod_affinity(task):
            return NO_TERMS
        known = self._terms.get((task.shape.id, task.namespace))
        return known[0] if known else _terms_of(task)

    def index_keys(self, task: Task) -> Iterable[Hashable]:
        """The keys under which pod counts look for a task: its labels and its terms."""
        return (*task.label_set.labels.items(), *self.of(task))

    def required_matching(self, label_set: LabelSet) -> frozenset[AffinityTerm]:
        """Required anti-affinity terms of any task that match pods with these labels."""
        return self._matching(label_set, self._required, True) if self._required else NO_TERMS

    def preferred_matching(self, label_set: LabelSet) -> frozenset[AffinityTerm]:
        """Preferred terms of any task that match pods with these labels."""
        return self._matching(label_set, self._preferred, False) if self._preferred else NO_TERMS

    def _matching(self, label_set: LabelSet, index: _TermIndex, required: bool) -> frozenset[AffinityTerm]:
        if self._cache_version != self._objects.version or len(self._cache) > CACHE_SIZE:
            self._cache.clear()
            self._cache_version = self._objects.version
        key = (label_set.id, required)
        terms = self._cache.get(key)
        if terms is None:
            terms = self._cache[key] = index.matching(label_set, self._objects)
        return terms

    def _index(self, terms: Iterable[AffinityTerm], sign: int) -> None:
        self._cache.clear()
        for term in terms:
            (self._preferred if term.weight else self._required).add(term, sign)


class _TermIndex:
    """Terms with the number of times each was added, by a label pair that a matching pod must have."""

    def __init__(self) -> None:
        self._by_label: dict[tuple[str, str] | None, dict[AffinityTerm, int]] = {}

    def __bool__(self) -> bool:
        return bool(self._by_label)

    def add(self, term: AffinityTerm, sign: int) -> None:
        for label in term.selector.index_keys or (None,):
            counts = self._by_label.setdefault(label, {})
            counts[term] = counts.get(term, 0) + sign
            if not counts[term]:
                del counts[term]
                if not counts:
                    del self._by_label[label]

    def matching(self, label_set: LabelSet, objects: LookupObjects) -> frozenset[AffinityTerm]:
        labels = (None, *label_set.labels.items())
        candidates = (term for label in labels for term in self._by_label.get(label, ()))
        return frozenset(term for term in candidates if term.selector.matches(label_set, objects))


def _has_pod_affinity(task: Task) -> bool:
    affinity = task.shape.spec.affinity
    return affinity is not None and (
        affinity.pod_affinity is not None or affinity.pod_anti_affinity is not None
    )


def _terms_of(task: Task) -> frozenset[AffinityTerm]:
    """The terms of a task that concern other pods; equal preferences are merged and their weights added."""
    spec, namespace = task.shape.spec, task.namespace
    weights: dict[AffinityTerm, int] = {}
    for preferred, weight in preferred_terms(spec):
        term = existing_pod_term(preferred, namespace)
        weights[term] = weights.get(term, 0) + weight
    merged = {term._replace(weight=weight) for term, weight in weights.items() if weight}
    return frozenset(
        merged.union(existing_pod_term(term, namespace) for term in required_anti_affinity(spec))
    )
