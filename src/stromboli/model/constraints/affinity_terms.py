"""The pod affinity terms of all tasks there are: who repels or likes a newcomer is found without asking everybody."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import TYPE_CHECKING

from stromboli.model.constraints.pod_affinity import Term, carried, preferred_terms, required_away

if TYPE_CHECKING:
    from stromboli.model.lookup_objects import Objects
    from stromboli.model.shape import LabelSet
    from stromboli.model.task import Task

NO_TERMS: frozenset[Term] = frozenset()
REMEMBERED = 10_000
"""Kin whose terms are remembered at a time."""


class Terms:
    """Required anti-affinity and preferred (anti-)affinity terms that any task carries, each once."""

    def __init__(self, objects: Objects):
        self._objects = objects
        self._carried: dict[tuple[int, str], tuple[frozenset[Term], list[int]]] = {}
        self._repelling = _Book()
        self._preferring = _Book()
        self._found: dict[tuple[int, bool], frozenset[Term]] = {}
        self._seen = -1

    def enter(self, task: Task) -> None:
        """A task is there."""
        if not _has_pod_affinity(task):
            return
        key = (task.shape.id, task.namespace)
        known = self._carried.get(key)
        if known is None:
            known = self._carried[key] = (_terms_of(task), [0])
            self._book(known[0], 1)
        known[1][0] += 1

    def leave(self, task: Task) -> None:
        """A task is gone."""
        if not _has_pod_affinity(task):
            return
        key = (task.shape.id, task.namespace)
        terms, count = self._carried[key]
        count[0] -= 1
        if not count[0]:
            del self._carried[key]
            self._book(terms, -1)

    def of(self, task: Task) -> frozenset[Term]:
        """The terms that a task carries."""
        if not _has_pod_affinity(task):
            return NO_TERMS
        known = self._carried.get((task.shape.id, task.namespace))
        return known[0] if known else _terms_of(task)

    def marks(self, task: Task) -> Iterable[Hashable]:
        """By what descriptions of tasks find those whom they mean: labels and terms."""
        return (*task.label_set.labels.items(), *self.of(task))

    def repelling(self, label_set: LabelSet) -> frozenset[Term]:
        """Required anti-affinity terms, of whomever, that mean these pods."""
        return self._about(label_set, self._repelling, True) if self._repelling else NO_TERMS

    def preferring(self, label_set: LabelSet) -> frozenset[Term]:
        """Preferred terms, of whomever, that mean these pods."""
        return self._about(label_set, self._preferring, False) if self._preferring else NO_TERMS

    def _about(self, label_set: LabelSet, book: _Book, required: bool) -> frozenset[Term]:
        if self._seen != self._objects.version or len(self._found) > REMEMBERED:
            self._found.clear()
            self._seen = self._objects.version
        key = (label_set.id, required)
        found = self._found.get(key)
        if found is None:
            found = self._found[key] = book.about(label_set, self._objects)
        return found

    def _book(self, terms: Iterable[Term], sign: int) -> None:
        self._found.clear()
        for term in terms:
            (self._preferring if term.weight else self._repelling).add(term, sign)


class _Book:
    """Terms with how often each was entered, found by a label pair that whom they mean must carry."""

    def __init__(self) -> None:
        self._by_mark: dict[tuple[str, str] | None, dict[Term, int]] = {}

    def __bool__(self) -> bool:
        return bool(self._by_mark)

    def add(self, term: Term, sign: int) -> None:
        for mark in term.whom.marks or (None,):
            page = self._by_mark.setdefault(mark, {})
            page[term] = page.get(term, 0) + sign
            if not page[term]:
                del page[term]
                if not page:
                    del self._by_mark[mark]

    def about(self, label_set: LabelSet, objects: Objects) -> frozenset[Term]:
        pages = [self._by_mark.get(mark, {}) for mark in (None, *label_set.labels.items())]
        return frozenset(term for page in pages for term in page if term.whom.matches(label_set, objects))


def _has_pod_affinity(task: Task) -> bool:
    affinity = task.shape.spec.affinity
    return affinity is not None and (
        affinity.pod_affinity is not None or affinity.pod_anti_affinity is not None
    )


def _terms_of(task: Task) -> frozenset[Term]:
    """What others feel of a task's affinities; preferences that say the same are one, with both weights."""
    spec, namespace = task.shape.spec, task.namespace
    weights: dict[Term, int] = {}
    for term, weight in preferred_terms(spec):
        wish = carried(term, namespace)
        weights[wish] = weights.get(wish, 0) + weight
    preferring = {wish._replace(weight=weight) for wish, weight in weights.items() if weight}
    return frozenset(preferring.union(carried(term, namespace) for term in required_away(spec)))
