"""Pods that are seen again and again: whatever changed, the model is the one that the last pods alone would make."""

from __future__ import annotations

from math import inf
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from stromboli.model.reservations import Reservation
from stromboli.model.status import Status
from stromboli.model.task import Task
from stromboli.scheduler.mirror.consistency import compare
from stromboli.testing import World
from tests.manifests import Manifest, group, pod
from tests.properties.rebuild import kept_sums, rebuilt_sums

STARTED = {"startTime": "2026-01-01T00:00:00Z"}
RUNNING: dict[str, Any] = {"on": "n1", "phase": "Running", "status": STARTED}
BOUND: dict[str, Any] = {"on": "n1", "phase": "Pending"}
CHANGES: list[dict[str, Any]] = [
    BOUND,
    {"on": "n1", "phase": "Running"},
    RUNNING,
    RUNNING | {"terminating": True},
    RUNNING | {"labels": {"app": "web"}},
    RUNNING | {"annotations": {"volcano.sh/preemptable": "false"}},
    RUNNING | {"role": "worker"},
    RUNNING | {"priority": 7},
    RUNNING | {"group": "other"},
    RUNNING | {"cpu": "2"},
    RUNNING | {"scheduler": "default-scheduler"},
    {"on": "n1", "phase": "Unknown"},
    {"on": "n1", "phase": "Succeeded"},
    {"on": "n2", "phase": "Running"},
]


def version(change: dict[str, Any]) -> Manifest:
    return pod("web-0", **{"group": "gang", "created": 1.0, **change})


def world(*manifests: Manifest) -> World:
    return World("n1 cpu=8, n2 cpu=8").add(group("gang"), group("other"), *manifests)


def only(made: World) -> Task:
    (task,) = made.cluster.tasks.values()
    return task


@given(st.lists(st.sampled_from(CHANGES), min_size=1, max_size=4))
@example([BOUND, RUNNING])
@example([RUNNING, RUNNING | {"group": "other"}, RUNNING])
def test_the_last_version_alone_would_make_the_same_model(changes: list[dict[str, Any]]) -> None:
    live = world()
    for change in changes:
        live.add(version(change))
        assert kept_sums(live.cluster) == rebuilt_sums(live.cluster)
    assert compare(live.cluster, world(version(changes[-1])).cluster) == []


@pytest.mark.parametrize(("change", "status"), [(BOUND, Status.BOUND), (RUNNING, Status.RUNNING)])
def test_the_echo_of_a_bind_touches_no_node(change: dict[str, Any], status: Status) -> None:
    live = world(version({}))
    task = only(live)
    live.cluster.move(task, Status.BINDING, live.cluster.nodes["n1"])
    before = live.cluster.columns.version.tolist()
    live.add(version(change))
    assert only(live) is task
    assert live.cluster.columns.version.tolist() == before
    assert task.status is status
    assert task.job is not None
    assert task.job.counts[status] == 1
    assert kept_sums(live.cluster) == rebuilt_sums(live.cluster)


def kept_for(owner: str, live: World) -> Reservation:
    return Reservation(owner, {0: 1000}, live.cluster.nodes["n1"], 0.0, inf)


@pytest.mark.parametrize(("owner", "stays"), [("another", True), ("Pod/default/web-0", False)])
def test_a_reservation_for_another_does_not_slow_an_echo_down(owner: str, stays: bool) -> None:
    live = world(version({}))
    task = only(live)
    live.cluster.move(task, Status.BINDING, live.cluster.nodes["n1"])
    live.cluster.reservations.reserve(kept_for(owner, live))
    live.add(version(RUNNING))
    assert (only(live) is task) is stays
    assert only(live).status is Status.RUNNING
    assert kept_sums(live.cluster) == rebuilt_sums(live.cluster)


def test_the_echo_of_a_guaranteed_pod_touches_no_node() -> None:
    amounts = {"cpu": "2", "memory": "1Gi"}
    container = {"name": "main", "resources": {"requests": amounts, "limits": amounts}}
    live = world(version({"spec": {"containers": [container]}}))
    task = only(live)
    live.cluster.move(task, Status.BINDING, live.cluster.nodes["n1"])
    live.add(version(RUNNING | {"spec": {"containers": [container]}}))
    assert only(live) is task
