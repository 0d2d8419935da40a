"""What a DaemonSet does next, by tables of nodes and their pods."""

from __future__ import annotations

from typing import Any

import pytest

from stromboli.api.types.controlled_pod import Pod
from stromboli.controllers.workloads.daemonset.daemon_set import DaemonSet
from stromboli.controllers.workloads.daemonset.failed_pods import FULL_DELAY, FailedPods
from stromboli.controllers.workloads.daemonset.node_eligibility import Eligibility
from stromboli.controllers.workloads.daemonset.reconcile import BURST, Outcome, reconcile, target_node
from stromboli.controllers.workloads.workload_pods import daemon_pod
from tests.controllers.workloads.workload_objects import NOW, daemon_set, decoded, pod

YES, STAY, NO = Eligibility(True, True), Eligibility(False, True), Eligibility(False, False)


def rolling(**options: Any) -> Any:
    return {"updateStrategy": {"type": "RollingUpdate", "rollingUpdate": options}}


SURGE = rolling(maxSurge=1, maxUnavailable=0)


def world(text: str) -> tuple[dict[str, Eligibility], list[Pod]]:
    """`n1 n2=ready n3=ready:old+unready -n4 ~n5`: nodes with their pods; not eligible (-), or only to stay (~)."""
    nodes, pods = {}, []
    for word in text.split():
        node, _, states = word.partition("=")
        name = node.lstrip("-~!")
        if not node.startswith("!"):  # the node is gone
            nodes[name] = NO if node.startswith("-") else STAY if node.startswith("~") else YES
        for index, entry in enumerate(filter(None, states.split("+"))):
            state, _, revision = entry.partition(":")
            pods.append(pod(f"{name}-{'ab'[index]}", state, revision or "new", name))
    return nodes, pods


def run(owned: DaemonSet, text: str, failed: FailedPods | None = None, now: float = NOW) -> Outcome:
    nodes, pods = world(text)
    return reconcile(owned, "new", pods, nodes, failed or FailedPods(), now)


def words(outcome: Outcome) -> str:
    return " ".join([*(f"+{node}" for node in outcome.create), *(f"-{each.name}" for each in outcome.delete)])


@pytest.mark.parametrize(
    ("nodes", "expected"),
    [
        ("n1 n2=ready n3", "+n1 +n3"),
        ("n1=ready -n2", ""),
        ("-n1=ready", "-n1-a"),
        ("~n1=ready ~n2", ""),
        ("-n1=ready-deleted", ""),
        ("n1=ready-deleted", ""),
        ("n1=Failed-deleted", "+n1"),
        ("n1=Failed", "-n1-a"),
        ("n1=Succeeded n2=ready", "-n1-a"),
        ("n1=ready+ready", "-n1-b"),
        ("!n1=ready", ""),  # it goes with its node
    ],
)
def test_every_eligible_node_has_one_pod(nodes: str, expected: str) -> None:
    assert words(run(daemon_set(), nodes)) == expected


@pytest.mark.parametrize(
    ("spec", "nodes", "expected"),
    [
        ({}, "n1=ready:old n2=ready:old", "-n1-a"),
        ({}, "n1=ready n2=ready:old", "-n2-a"),
        ({}, "n1=unready n2=ready:old", ""),
        ({}, "n1=unready:old n2=ready:old", "-n1-a"),
        ({}, "n1=unready:old n2=unready:old", "-n1-a -n2-a"),
        ({}, "n1=ready-deleted:old n2=ready:old", ""),
        ({}, "n1 n2=ready:old", "+n1"),
        ({"minReadySeconds": 60}, "n1=fresh n2=ready:old", ""),
        (rolling(maxUnavailable="50%"), "n1=ready:old n2=ready:old n3=ready:old", "-n1-a -n2-a"),
        (rolling(maxUnavailable=0), "n1=ready:old n2=ready:old", "-n1-a"),
        ({"updateStrategy": {"type": "OnDelete"}}, "n1=ready:old n2=unready:old", ""),
        (SURGE, "n1=ready:old n2=ready:old", "+n1"),
        (SURGE, "n1=ready:old+unready n2=ready:old", ""),
        (SURGE, "n1=ready:old+ready n2=ready:old", "-n1-a"),
        (SURGE, "n1=unready:old+unready n2=ready:old", "-n1-a"),
        (SURGE, "n1=unready:old n2=ready:old", "+n1 +n2"),
        (SURGE, "n1=ready:old+ready-deleted:old", "+n1"),
        (SURGE, "n1=ready-deleted:old", "+n1"),
        (SURGE, "n1=ready ~n2=ready:old", "-n2-a"),
        (SURGE, "n1=unready ~n2=ready:old", ""),
        (SURGE, "n1=unready ~n2=unready:old", "-n2-a"),
        (rolling(maxSurge="100%", maxUnavailable=0), "n1=ready:old n2=ready:old", "+n1 +n2"),
    ],
)
def test_an_update_keeps_within_its_limits(spec: Any, nodes: str, expected: str) -> None:
    assert words(run(daemon_set(**spec), nodes)) == expected


def test_failed_pods_of_a_node_are_replaced_less_and_less_often() -> None:
    failed, owned = FailedPods(), daemon_set()
    first = run(owned, "n1=Failed", failed)
    assert words(first) == "-n1-a"
    assert [event.reason for event in first.events] == ["FailedDaemonPod"]
    soon = run(owned, "n1=Failed n2=Failed", failed, NOW + 0.5)
    assert (words(soon), soon.requeue_after) == ("-n2-a", 0.5)
    assert words(run(owned, "n1=Failed", failed, NOW + 1)) == "-n1-a"
    assert run(owned, "n1=Failed", failed, NOW + 2).requeue_after == 1
    assert words(run(owned, "n1=Failed", failed, NOW + 3 * FULL_DELAY)) == "-n1-a"
    assert words(run(owned, "n1=Failed", failed, NOW + 3 * FULL_DELAY + 1)) == "-n1-a"
    failed.forget("set")
    assert words(run(owned, "n1=Failed", failed, NOW + 3 * FULL_DELAY + 1)) == "-n1-a"


def test_the_delay_has_an_end() -> None:
    failed, now = FailedPods(), NOW
    for _ in range(20):
        assert failed.delay("set", 1, "n1", now) == 0
        now += failed.delay("set", 1, "n1", now)
    assert failed.delay("set", 1, "n1", now) == 0
    assert failed.delay("set", 1, "n1", now) == FULL_DELAY


def test_an_ended_pod_is_told() -> None:
    (event,) = run(daemon_set(), "n1=Succeeded").events
    text = "Found succeeded daemon pod team/n1-a on node n1, will try to delete it"
    assert (event.type, event.reason, event.message) == ("Normal", "SucceededDaemonPod", text)


@pytest.mark.parametrize(
    ("nodes", "expected"),
    [
        ("", (0, 0, 0, 0, 0, 0, 0)),
        ("n1 n2=ready n3=unready", (3, 2, 0, 1, 2, 1, 2)),
        ("n1=ready:old -n2=ready ~n3=ready", (1, 1, 2, 1, 0, 1, 0)),
        ("n1=fresh", (1, 1, 0, 1, 1, 0, 1)),
        ("n1=Failed-deleted", (1, 0, 0, 0, 0, 0, 1)),
    ],
)
def test_the_status_counts_nodes(nodes: str, expected: Any) -> None:
    status = run(daemon_set(minReadySeconds=60), nodes).status
    assert expected == (
        status.desired_number_scheduled,
        status.current_number_scheduled,
        status.number_misscheduled,
        status.number_ready,
        status.updated_number_scheduled,
        status.number_available,
        status.number_unavailable,
    )
    assert status.observed_generation == 7


def test_it_looks_again_when_a_ready_pod_becomes_available() -> None:
    assert run(daemon_set(minReadySeconds=60), "n1=fresh").requeue_after == 60


def test_a_pod_without_a_node_belongs_to_that_of_its_affinity() -> None:
    owned = daemon_set()
    waiting: Pod = decoded(Pod, daemon_pod(owned, "n1"))
    assert target_node(waiting) == "n1"
    assert reconcile(owned, "new", [waiting], {"n1": YES}, FailedPods(), NOW).create == []
    gone = reconcile(owned, "new", [waiting], {}, FailedPods(), NOW)
    assert [each.name for each in gone.delete] == [waiting.name]
    assert target_node(decoded(Pod, {"metadata": {"name": "p"}})) == ""


def test_a_sync_creates_and_deletes_so_many_pods_at_most() -> None:
    nodes = {f"n{number}": YES for number in range(1000)}
    outcome = reconcile(daemon_set(), "new", [], nodes, FailedPods(), NOW)
    assert len(outcome.create) == BURST
