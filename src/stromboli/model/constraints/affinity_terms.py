"""An index of the pod affinity terms of all tasks, to find those that match an incoming pod."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import TYPE_CHECKING

from stromboli.model.constraints.pod_affinity import (
    AffinityTerm,
    existing_pod_term,
    preferred_terms,
    required_anti_affinity,
)

if TYPE_CHECKING:
    from stromboli.model.lookup_objects import LookupObjects
    from stromboli.model.shape import LabelSet
    from stromboli.model.task import Task

NO_TERMS: frozenset[AffinityTerm] = frozenset()
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
