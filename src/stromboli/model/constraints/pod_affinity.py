"""Pod affinity terms: which pods a term means, and near which of them one wants to be or not."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from stromboli.api.selectors import matches_labels
from stromboli.api.types.meta import LabelSelector

if TYPE_CHECKING:
    from stromboli.api.types.pod import PodAffinity, PodAffinityTerm, PodSpec
    from stromboli.model.cluster import Cluster
    from stromboli.model.constraints.pod_tallies import Tally
    from stromboli.model.lookup_objects import Objects
    from stromboli.model.shape import LabelSet
    from stromboli.model.task import Task

_encoder = msgspec.msgpack.Encoder(order="sorted")
_EVERYTHING = LabelSelector()


class PodSelector:
    """Which pods a term means, by labels and namespaces; two are equal if they say the same."""

    __slots__ = ("_namespace_selector", "_namespaces", "_selector", "key", "marks")

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
        self.marks = label_marks(selector)

    def matches(self, label_set: LabelSet, objects: Objects) -> bool:
        """Whether a pod is meant."""
        return self._speaks_of(label_set.namespace, objects) and matches_labels(
            self._selector, label_set.labels
        )

    def _speaks_of(self, namespace: str, objects: Objects) -> bool:
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


class Term(NamedTuple):
    """Pods, the domain around each of them that counts, and what it is worth to be in there (0: required)."""

    whom: PodSelector
    topology_key: str
    weight: int = 0


def label_marks(selector: LabelSelector | None) -> tuple[tuple[str, str], ...]:
    """Labels of which a pod must carry one to match; none where that cannot be said."""
    if selector is None:
        return ()
    if selector.match_labels:
        return (min(selector.match_labels.items()),)
    for requirement in selector.match_expressions:
        if requirement.operator == "In":
            return tuple((requirement.key, value) for value in dict.fromkeys(requirement.values))
    return ()


# -- what a pod wants, as an incoming one and as one that is there


def required_near(spec: PodSpec) -> tuple[PodAffinityTerm, ...]:
    """Required pod affinity."""
    near = _near(spec)
    return near.required if near else ()


def required_away(spec: PodSpec) -> tuple[PodAffinityTerm, ...]:
    """Required pod anti-affinity."""
    away = _away(spec)
    return away.required if away else ()


def preferred_terms(spec: PodSpec) -> Iterator[tuple[PodAffinityTerm, int]]:
    """Preferred terms with their weight: above zero to be near, below to be away."""
    for side, sign in ((_near(spec), 1), (_away(spec), -1)):
        for preferred in side.preferred if side else ():
            yield preferred.term, sign * preferred.weight


def _near(spec: PodSpec) -> PodAffinity | None:
    return spec.affinity.pod_affinity if spec.affinity else None


def _away(spec: PodSpec) -> PodAffinity | None:
    return spec.affinity.pod_anti_affinity if spec.affinity else None


def carried(term: PodAffinityTerm, namespace: str, weight: int = 0) -> Term:
    """A term of a pod that is there: without namespaces it speaks of the pod's own."""
    return Term(
        PodSelector(term.label_selector, _named(term, namespace), term.namespace_selector),
        term.topology_key,
        weight,
    )


def sought(term: PodAffinityTerm, namespace: str, weight: int = 0) -> Term:
    """A term of a pod that looks for a place."""
    selector = term.namespace_selector
    if matches_labels(selector, {}):
        selector = _EVERYTHING  # quirk: spec 04 2.6, what matches no labels at all matches every namespace
    return Term(
        PodSelector(term.label_selector, _named(term, namespace), selector), term.topology_key, weight
    )


def _named(term: PodAffinityTerm, namespace: str) -> frozenset[str]:
    if not term.namespaces and term.namespace_selector is None:
        return frozenset({namespace})
    return frozenset(term.namespaces)


# -- counting


def meant_pods(cluster: Cluster, *whom: PodSelector) -> Tally:
    """How many pods on each node are meant by all of these."""
    objects = cluster.objects

    def counts(task: Task) -> bool:
        return all(one.matches(task.label_set, objects) for one in whom)

    marks = next((one.marks for one in whom if one.marks), ())
    return cluster.tallies.get(("meant", whom), counts, marks)


def carriers(cluster: Cluster, term: Term) -> Tally:
    """How many pods on each node carry a term themselves."""
    terms = cluster.terms

    def counts(task: Task) -> bool:
        return term in terms.of(task)

    return cluster.tallies.get(("carriers", term), counts, (term,))
