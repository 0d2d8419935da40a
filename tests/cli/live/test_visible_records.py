"""Records for those who may see less: as if the rest of the cluster did not exist."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import astuple
from typing import Any, NamedTuple

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stromboli.api.decoding import decode, decode_as
from stromboli.api.types.meta import Object, ObjectMeta
from stromboli.api.types.volcano_job import Job
from stromboli.cli.live.cluster_records import ClusterRecords, Event, InvolvedObject, PodSums
from stromboli.cli.live.visible_records import (
    CLUSTER_WIDE,
    EVERYTHING,
    NAMESPACED,
    Visibility,
    VisibleRecords,
)
from stromboli.simulator.cluster_notation import nodes, queues
from stromboli.simulator.job_manifests import job_manifests

NAMESPACES = ("a", "b", "c")


class Change(NamedTuple):
    """An object that is put or dropped, and where it is."""

    kind: str
    namespace: str
    object: Object
    is_gone: bool


def _pod(namespace: str, number: int, variant: int) -> Object:
    running_on = ("", "n1", "n2")[variant % 3]
    terms: Any = {"pods": 4, "cpu": 1 + variant, "namespace": namespace}
    manifest = job_manifests(f"gang{number % 2}", **terms)[1 + number]
    manifest["spec"]["nodeName"] = running_on
    manifest["status"]["phase"] = ("Pending", "Running", "Succeeded")[variant % 3 if running_on else 0]
    return _decoded(manifest)


def _group(namespace: str, number: int, variant: int) -> Object:
    phase = ("Pending", "Inqueue", "Running", "Completed")[variant]
    return _decoded(job_manifests(f"gang{number}", namespace=namespace, phase=phase, queue="q")[0])


def _job(namespace: str, number: int, variant: int) -> Object:
    manifest = {
        "metadata": {"name": f"gang{number}", "namespace": namespace},
        "spec": {"minAvailable": variant, "tasks": []},
    }
    return decode_as(Job, msgspec.json.encode(manifest))


def _event(namespace: str, number: int, variant: int) -> Object:
    about = InvolvedObject(kind="Pod", namespace=namespace, name=f"gang{number}-0")
    meta = ObjectMeta(name=f"e{number}", namespace=namespace)
    return Event(meta, involved_object=about, reason="Evict", message=f"because of {variant}")


def _node(_: str, number: int, variant: int) -> Object:
    return _decoded(nodes(f"n{number} cpu={variant + 1}")[0])


def _queue(_: str, number: int, variant: int) -> Object:
    return _decoded(queues(f"q{number} weight={variant + 1}")[0])


def _hyper_node(_: str, number: int, variant: int) -> Object:
    member = {"type": "Node", "selector": {"exactMatch": {"name": f"n{variant}"}}}
    return _decoded(
        {
            "apiVersion": "topology.volcano.sh/v1alpha1",
            "kind": "HyperNode",
            "metadata": {"name": f"h{number}"},
            "spec": {"tier": 1, "members": [member]},
        }
    )


def _decoded(manifest: dict[str, Any]) -> Object:
    object = decode(manifest)
    assert object is not None
    return object


MAKERS: dict[str, Callable[[str, int, int], Object]] = {
    "pods": _pod,
    "podgroups": _group,
    "jobs": _job,
    "events": _event,
    "nodes": _node,
    "queues": _queue,
    "hypernodes": _hyper_node,
}
CHANGES = st.builds(
    lambda kind, namespace, number, variant, is_gone: Change(
        kind, namespace, MAKERS[kind](namespace, number, variant), is_gone
    ),
    st.sampled_from(sorted(MAKERS)),
    st.sampled_from(NAMESPACES),
    st.integers(0, 3),
    st.integers(0, 3),
    st.sampled_from([False, False, False, True]),
)
VISIBILITIES = st.builds(
    Visibility,
    st.dictionaries(
        st.sampled_from(NAMESPACED), st.one_of(st.none(), st.frozensets(st.sampled_from(NAMESPACES)))
    ),
    st.frozensets(st.sampled_from(CLUSTER_WIDE)),
)


def apply(records: ClusterRecords, change: Change) -> None:
    if change.is_gone:
        records.drop(change.object)
    else:
        records.put(change.object, new=False)


def is_visible(visibility: Visibility, change: Change) -> bool:
    """Said once more, without the code that is tested."""
    if change.kind in CLUSTER_WIDE:
        return change.kind not in visibility.hidden
    if change.kind not in visibility.namespaces:
        return True
    allowed = visibility.namespaces[change.kind]
    return allowed is None or change.namespace in allowed


def _sums(sums: PodSums) -> dict[str, Any]:
    """Resources of which nobody has any are left out."""
    amounts = {
        name: {key: each for key, each in getattr(sums, name).items() if each} for name in ("used", "waiting")
    }
    return {**amounts, "placed": sums.placed, "running": sums.running, "pending": sums.pending}


def shown(records: ClusterRecords) -> dict[str, Any]:
    """Everything that is kept of a cluster but what has happened."""
    return {
        "pods": records.pods,
        "groups": records.groups,
        "jobs": records.jobs,
        "nodes": records.nodes,
        "queues": records.queues,
        "hyper nodes": records.hyper_nodes,
        "of group": {key: _sums(sums) for key, sums in records.of_group.items()},
        "of node": {key: _sums(sums) for key, sums in records.of_node.items()},
        "of all": _sums(records.of_all),
        "total": {name: amount for name, amount in records.total.items() if amount},
    }


def happened(records: ClusterRecords) -> dict[str, Any]:
    news = [astuple(each)[1:] if each.what != "evicted" else astuple(each) for each in records.news]
    return {"news": news, "starts": records.pod_starts, "evictions": records.evictions}


@given(st.lists(CHANGES, max_size=25), st.lists(CHANGES, max_size=25), VISIBILITIES, st.booleans())
def test_they_are_those_of_a_cluster_that_has_nothing_else(
    before: list[Change], after: list[Change], visibility: Visibility, tells_news: bool
) -> None:
    whole, small = ClusterRecords(), ClusterRecords()
    for change in before:
        apply(whole, change)
        if is_visible(visibility, change):
            apply(small, change)
    whole.tells_news = tells_news
    visible = VisibleRecords(whole, visibility)
    assert shown(visible) == shown(small)

    fresh = VisibleRecords(ClusterRecords(), EVERYTHING)
    assert happened(visible) == happened(fresh), "what was before is no news"
    small.news.clear()
    small._evictions.clear()
    small.tells_news = tells_news
    for change in after:
        versions = visible.version, visible.network_version
        expected = small.version, small.network_version
        apply(whole, change)
        if is_visible(visibility, change):
            apply(small, change)
        moved = visible.version - versions[0], visible.network_version - versions[1]
        assert moved == (small.version - expected[0], small.network_version - expected[1])
        assert shown(visible) == shown(small)
    assert happened(visible) == happened(small)

    visible.stop()
    kept = shown(visible)
    for change in before:
        apply(whole, change)
    assert shown(visible) == kept


@pytest.mark.parametrize("kind", NAMESPACED)
def test_namespaces_are_those_of_the_object_and_not_names_that_begin_alike(kind: str) -> None:
    visibility = Visibility({kind: frozenset({"a"})})
    assert visibility.sees(kind, "a/x")
    for key in ("ab/x", "b/a", "/a", "", "A/x"):
        assert not visibility.sees(kind, key), key


def test_who_sees_everything_sees_the_whole_cluster() -> None:
    assert EVERYTHING.is_complete
    assert Visibility(dict.fromkeys(NAMESPACED)).is_complete
    assert not Visibility({"pods": frozenset()}).is_complete
    assert not Visibility(hidden=frozenset({"nodes"})).is_complete


@given(VISIBILITIES, VISIBILITIES)
def test_who_has_the_same_key_sees_the_same(one: Visibility, other: Visibility) -> None:
    seen = [
        [
            (kind, name)
            for kind in (*NAMESPACED, *CLUSTER_WIDE)
            for name in NAMESPACES
            if visibility.sees(kind, f"{name}/x" if kind in NAMESPACED else name)
        ]
        for visibility in (one, other)
    ]
    if one.key == other.key:
        assert seen[0] == seen[1]


def test_an_event_about_a_pod_of_another_namespace_is_shown_where_it_is() -> None:
    whole = ClusterRecords()
    visible = VisibleRecords(whole, Visibility({"events": frozenset({"a"})}))
    about = InvolvedObject(kind="Pod", namespace="a", name="x")
    whole.put(Event(metadata=ObjectMeta(name="e", namespace="b"), involved_object=about), new=True)
    assert not visible.news
    whole.put(Event(metadata=ObjectMeta(name="e", namespace="a"), involved_object=about), new=True)
    assert [news.subject for news in visible.news] == ["a/x"]
