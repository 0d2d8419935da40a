"""Who is meant by the terms of others is found without asking every term, and only terms in use count."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from stromboli.api import names
from stromboli.api.types.meta import LabelSelector, ObjectMeta, Requirement
from stromboli.api.types.pod import Affinity, PodAffinity, PodAffinityTerm, PreferredPodTerm
from stromboli.api.types.scheduling import Namespace
from stromboli.model.constraints.pod_affinity import (
    existing_pod_term,
    incoming_pod_term,
    preferred_terms,
    required_anti_affinity,
)
from stromboli.testing import World
from tests.manifests import decoded, node, pod, task_named
from tests.number_of_examples import scaled

values = st.sampled_from(["a", "b"])
keys = st.sampled_from(["app", "tier"])
requirements = st.one_of(
    st.builds(
        Requirement,
        keys,
        st.sampled_from(["In", "NotIn"]),
        st.lists(values, min_size=1, max_size=2).map(tuple),
    ),
    st.builds(Requirement, keys, st.sampled_from(["Exists", "DoesNotExist"])),
)
selectors = st.builds(
    LabelSelector,
    st.dictionaries(keys, values, max_size=2),
    st.lists(requirements, max_size=2).map(tuple),
)
terms = st.builds(
    PodAffinityTerm,
    st.one_of(st.none(), selectors),
    st.sampled_from([names.HOSTNAME, names.ZONE]),
    st.lists(st.sampled_from(["default", "other"]), max_size=2).map(tuple),
    st.one_of(st.none(), selectors),
)
sides = st.builds(
    PodAffinity,
    st.lists(terms, max_size=2).map(tuple),
    st.lists(st.builds(PreferredPodTerm, st.integers(1, 9), terms), max_size=2).map(tuple),
)
affinities = st.builds(Affinity, st.none(), sides, sides)
kins = st.dictionaries(keys, values, max_size=2)


@settings(max_examples=scaled(75), deadline=None)
@given(st.lists(affinities, min_size=1, max_size=4), kins, kins)
def test_the_terms_about_a_pod_are_those_that_mean_it(
    carrying: list[Affinity], labels: dict[str, str], team: dict[str, str]
) -> None:
    others = [
        decoded(pod(f"o{place}", spec={"affinity": affinity})) for place, affinity in enumerate(carrying)
    ]
    space = Namespace(ObjectMeta("default", labels=team))
    cluster = World().add(node("n"), space, *others, pod("p", labels=labels)).cluster
    label_set = task_named(cluster, "p").label_set
    needs = {
        existing_pod_term(term, "default") for other in others for term in required_anti_affinity(other.spec)
    }
    meant = {term for term in needs if term.selector.matches(label_set, cluster.objects)}
    assert cluster.affinity_terms.required_matching(label_set) == meant
    wishes = {
        term
        for other in others
        for term in cluster.affinity_terms.of(task_named(cluster, other.name))
        if term.weight
    }
    assert cluster.affinity_terms.preferred_matching(label_set) == {
        t for t in wishes if t.selector.matches(label_set, cluster.objects)
    }


def shy(weight: int = 0, **selector: str) -> Affinity:
    term = PodAffinityTerm(LabelSelector(selector), names.HOSTNAME)
    if not weight:
        return Affinity(pod_anti_affinity=PodAffinity((term,)))
    return Affinity(pod_anti_affinity=PodAffinity((), (PreferredPodTerm(weight, term),)))


def test_a_term_is_forgotten_with_the_last_pod_that_carries_it() -> None:
    twins = [pod(name, spec={"affinity": shy(app="web")}) for name in ("a", "b")]
    world = World().add(*twins, pod("p", labels={"app": "web"}))
    cluster = world.cluster
    label_set = task_named(cluster, "p").label_set
    assert len(cluster.affinity_terms.required_matching(label_set)) == 1, "two pods, one term"
    for twin, left in zip(twins, (1, 0), strict=True):
        world.remove(twin)
        assert len(cluster.affinity_terms.required_matching(label_set)) == left


def test_wishes_that_say_the_same_are_one_with_both_weights() -> None:
    term = PodAffinityTerm(LabelSelector({"app": "web"}), names.HOSTNAME)
    twice = PodAffinity((), (PreferredPodTerm(2, term), PreferredPodTerm(3, term)))
    for side, weight in (("pod_affinity", 5), ("pod_anti_affinity", -5)):
        sides: dict[str, Any] = {side: twice}
        cluster = World().add(pod("a", spec={"affinity": Affinity(**sides)})).cluster
        assert [term.weight for term in cluster.affinity_terms.of(task_named(cluster, "a"))] == [weight]
    cluster = World().add(pod("a", spec={"affinity": Affinity(None, twice, twice)})).cluster
    assert not cluster.affinity_terms.preferred_matching(task_named(cluster, "a").label_set)


def test_signs_follow_the_side_of_a_wish() -> None:
    spec = decoded(pod("a", spec={"affinity": shy(4, app="web")})).spec
    assert [weight for _, weight in preferred_terms(spec)] == [-4]


def test_a_term_without_namespaces_speaks_of_its_own_and_a_newcomers_loose_selector_of_all() -> None:
    """quirk: spec 04 2.6"""
    cluster = (
        World()
        .add(
            Namespace(ObjectMeta("other", labels={"env": "test"})),
            pod("here", labels={"app": "web"}),
            pod("there", labels={"app": "web"}, namespace="other"),
        )
        .cluster
    )
    here, there = (task_named(cluster, "here").label_set, task_named(cluster, "there").label_set)
    own = PodAffinityTerm(LabelSelector(), names.HOSTNAME)
    loose = PodAffinityTerm(
        LabelSelector(), names.HOSTNAME, (), LabelSelector({}, (Requirement("env", "NotIn", ("test",)),))
    )
    assert [
        existing_pod_term(own, "default").selector.matches(label_set, cluster.objects)
        for label_set in (here, there)
    ] == [
        True,
        False,
    ]
    assert [
        existing_pod_term(loose, "default").selector.matches(label_set, cluster.objects)
        for label_set in (here, there)
    ] == [
        True,
        False,
    ]
    assert [
        incoming_pod_term(loose, "default").selector.matches(label_set, cluster.objects)
        for label_set in (here, there)
    ] == [
        True,
        True,
    ]
