"""How full nodes are, by what the pods on them request (spec 06 11.2)."""

from __future__ import annotations

from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from stromboli.controllers.sharding.node_utilization import NodeUtilization, Utilization
from stromboli.controllers.watched_kinds import MIRROR, Node, PlacedPod


def pod(name: str, node: str = "n", phase: str = "Running", cpu: Any = "1", **metadata: Any) -> PlacedPod:
    container = {"resources": {"requests": {"cpu": cpu, "memory": "1Gi"}}}
    manifest = {
        "metadata": {"name": name, **metadata},
        "spec": {"nodeName": node, "containers": [container], "initContainers": [container]},
        "status": {"phase": phase},
    }
    return msgspec.convert(manifest, PlacedPod)


def node(cpu: Any = "4", memory: Any = "8Gi") -> Node:
    capacity = {"cpu": cpu, "memory": memory}
    return msgspec.convert({"metadata": {"name": "n"}, "status": {"capacity": capacity}}, Node)


def test_requests_of_containers_are_shares_of_the_capacity() -> None:
    utilization = NodeUtilization()
    assert utilization.of(node()) == (0, 0)
    assert utilization.pod_changed(None, pod("a")) == {"n"}
    utilization.pod_changed(None, pod("b", cpu="500m"))
    assert utilization.of(node()) == Utilization(1.5 / 4, 2 / 8)
    assert utilization.of(node(cpu="1")) == (1.0, 0.25)
    assert utilization.of(node(cpu="0")) == (0.0, 0.25)


def test_pods_that_ended_or_mirror_static_pods_or_have_no_node_take_nothing() -> None:
    utilization = NodeUtilization()
    for left_out in (
        pod("a", phase="Succeeded"),
        pod("b", phase="Failed"),
        pod("c", annotations={MIRROR: "x"}),
        pod("d", node=""),
    ):
        assert not utilization.pod_changed(None, left_out)
    assert utilization.of(node()) == (0, 0)


def test_a_pod_that_ends_or_grows_or_moves_changes_the_sums() -> None:
    utilization = NodeUtilization()
    utilization.pod_changed(None, pod("a"))
    utilization.pod_changed(pod("a"), pod("a", cpu="2"))
    assert utilization.of(node()).cpu == 0.5
    assert not utilization.pod_changed(pod("a", cpu="2"), pod("a", cpu="2"))
    assert utilization.pod_changed(pod("a", cpu="2"), pod("a", node="m")) == {"n", "m"}
    assert utilization.of(node()).cpu == 0
    utilization.pod_changed(pod("a", node="m"), pod("a", node="m", phase="Failed"))
    assert not utilization._requests


def test_amounts_that_nobody_can_read_count_for_nothing() -> None:
    utilization = NodeUtilization()
    utilization.pod_changed(None, pod("a", cpu="plenty"))
    utilization.pod_changed(None, pod("b", cpu="-3"))
    assert utilization.of(node()).cpu == 0
    assert utilization.of(node(cpu="much")).cpu == 0
    utilization.pod_changed(None, pod("c", cpu="9T"))
    assert utilization.of(node()).cpu == 1.0


def test_no_labels_and_annotations_of_other_peoples_pods_are_kept() -> None:
    kept = pod("a", labels={"x": "y" * 50}, annotations={"z": "w" * 100_000, MIRROR: "1"})
    assert kept.is_mirror
    assert not kept.metadata.labels
    assert not kept.metadata.annotations


_STATES = st.none() | st.builds(
    pod,
    st.just("p"),
    st.sampled_from(["n", "m", ""]),
    st.sampled_from(["Running", "Failed"]),
    st.sampled_from(["1", "250m"]),
)


@given(st.lists(_STATES, max_size=12))
def test_sums_kept_up_equal_sums_made_anew(states: list[PlacedPod | None]) -> None:
    kept_up, last = NodeUtilization(), None
    for state in states:
        kept_up.pod_changed(last, state)
        last = state
    anew = NodeUtilization()
    anew.pod_changed(None, last)
    assert kept_up._requests == anew._requests
