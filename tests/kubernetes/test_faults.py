"""Trouble between a scheduler and the API server: nothing is bound twice, by half, or beyond a node's size."""

from __future__ import annotations

import time

import pytest

from tests.kubernetes.faults import WATCH, Between, Fault, Trouble
from tests.kubernetes.scheduler_cluster import NAMESPACE, VOLCANO, SchedulerCluster

pytestmark = pytest.mark.filterwarnings(  # connections of the one in between that a test broke off
    "ignore::pytest.PytestUnraisableExceptionWarning"
)


BINDING = "/binding"


def test_answers_to_binds_are_lost(cluster: SchedulerCluster, proxy: Between) -> None:
    proxy.rule = lambda method, path, count: (
        Trouble.LOSE_ANSWER if path.endswith(BINDING) and count == 1 else None
    )
    cluster.add_nodes(4, cpu=10)
    scheduler = cluster.start_scheduler(server=proxy.url)
    cluster.submit("train", pods=40)
    cluster.wait_for_running("train", 40)
    cluster.wait(lambda: cluster.phase("train") == "Running", "the group to be Running")
    proxy.all_is_well(cluster, 40)
    assert "failed" not in scheduler.output


def test_binds_are_answered_with_500_at_first(cluster: SchedulerCluster, proxy: Between) -> None:
    proxy.rule = lambda method, path, count: 500 if path.endswith(BINDING) and count <= 3 else None
    cluster.add_nodes(4, cpu=10)
    cluster.start_scheduler(server=proxy.url)
    cluster.submit("train", pods=40)
    cluster.wait_for_running("train", 40)
    proxy.all_is_well(cluster, 40)


def test_everything_is_answered_with_429_every_other_time(cluster: SchedulerCluster, proxy: Between) -> None:
    turns = [0]

    def rule(method: str, path: str, count: int) -> Fault:
        turns[0] += 1
        return 429 if turns[0] % 2 else None

    cluster.add_nodes(4, cpu=10)
    scheduler = cluster.start_scheduler("--leader-elect=false", server=proxy.url)
    proxy.rule = rule
    cluster.submit("train", pods=20)
    cluster.wait_for_running("train", 20, 90)
    proxy.rule = lambda method, path, count: None
    assert scheduler.process.poll() is None
    proxy.all_is_well(cluster, 20)


def test_a_bind_that_is_refused_for_good_is_told_and_tried_again(
    cluster: SchedulerCluster, proxy: Between
) -> None:
    proxy.rule = lambda method, path, count: 403 if path.endswith("/train-3/binding") else None
    cluster.add_nodes(4, cpu=10)
    cluster.start_scheduler(server=proxy.url)
    cluster.submit("train", pods=8)
    cluster.wait(lambda: len(cluster.bound("train")) == 7, "all but one to be bound")
    cluster.wait(
        lambda: any(
            reason == "FailedScheduling" and "failed to bind to node" in text
            for reason, text in cluster.events("train-3")
        ),
        "the pod to be told",
    )
    path = f"/api/v1/namespaces/{NAMESPACE}/events?fieldSelector=involvedObject.name%3Dtrain-3"
    cluster.wait(
        lambda: any(event.get("count", 0) > 1 for event in cluster.read(path)["items"]),
        "an event to be counted up",
    )
    proxy.rule = lambda method, path, count: None
    cluster.wait_for_running("train", 8)
    proxy.all_is_well(cluster, 8)


def test_a_gang_of_which_one_pod_cannot_be_bound_makes_room_for_others(
    cluster: SchedulerCluster, proxy: Between
) -> None:
    proxy.rule = lambda method, path, count: 403 if path.endswith("/torn-3/binding") else None
    cluster.add_nodes(1, cpu=4)
    cluster.start_scheduler("--gang-bind-timeout=3s", server=proxy.url)
    cluster.submit("torn", pods=4)
    cluster.wait(lambda: len(cluster.bound("torn")) == 3, "a part of the gang to be bound")
    cluster.wait(lambda: not cluster.bound("torn"), "the part to be released")
    assert any("only 3 of 4 could be bound" in text for _, text in cluster.events("torn"))
    cluster.submit("other", pods=4)
    cluster.wait_for_running("other", 4)
    cluster.check_capacity()


def test_watches_are_cut_again_and_again(cluster: SchedulerCluster, proxy: Between) -> None:
    cluster.add_nodes(4, cpu=10)
    cluster.start_scheduler(
        "--kube-api-qps=60", "--kube-api-burst=10", "--leader-elect=false", server=proxy.url
    )
    cluster.submit("train", pods=40)
    for _ in range(8):
        proxy.cut_watches()
        time.sleep(0.3)
    cluster.wait_for_running("train", 40)
    proxy.all_is_well(cluster, 40)


def test_history_is_forgotten_again_and_again(cluster: SchedulerCluster, proxy: Between) -> None:
    proxy.rule = lambda method, path, count: 410 if path.endswith(WATCH) and count % 2 else None
    cluster.add_nodes(4, cpu=10)
    cluster.start_scheduler(
        "--kube-api-qps=60", "--kube-api-burst=10", "--leader-elect=false", server=proxy.url
    )
    cluster.submit("train", pods=40)
    for _ in range(4):
        proxy.cut_watches()
        time.sleep(0.5)
    cluster.wait_for_running("train", 40)
    assert sum(request.path == "/api/v1/pods" for request in proxy.seen) > 1, "listed again"
    proxy.all_is_well(cluster, 40)


def test_an_eviction_that_fails_at_first_is_carried_out(cluster: SchedulerCluster, proxy: Between) -> None:
    cluster.policy.write_text(cluster.policy.read_text().replace("backfill", "preempt, backfill"))
    proxy.rule = lambda method, path, count: 500 if method == "DELETE" and count <= 2 else None
    for name, value in (("low", 1), ("high", 100)):
        cluster.plane.apply(
            {
                "apiVersion": "scheduling.k8s.io/v1",
                "kind": "PriorityClass",
                "metadata": {"name": name},
                "value": value,
            }
        )
    cluster.add_nodes(1, cpu=2)
    cluster.start_scheduler(server=proxy.url)
    cluster.submit("old", pods=2, minimum=1, priority="low")
    cluster.wait_for_running("old", 2)
    cluster.submit("urgent", pods=1, priority="high")
    cluster.wait_for_running("urgent", 1)
    assert len(cluster.pods("old")) == 1
    evicted = {pod["metadata"]["name"] for pod in cluster.pods("old")} ^ {"old-0", "old-1"}
    path = f"/api/v1/namespaces/{NAMESPACE}/pods/{evicted.pop()}"
    assert [request.method for request in proxy.seen if request.path == path] == ["DELETE"]
    cluster.check_capacity()


def test_a_condition_that_others_write_while_a_status_is_on_its_way_is_kept(
    cluster: SchedulerCluster, proxy: Between
) -> None:
    path = f"{VOLCANO}/namespaces/{NAMESPACE}/podgroups/train"
    theirs = {"type": "Theirs", "status": "True", "reason": "Test", "message": "", "transitionID": "1"}

    def rule(method: str, asked: str, count: int) -> Fault:
        if (method, asked, count) == ("PATCH", path, 1):
            known = cluster.group("train").get("status", {}).get("conditions", [])
            patch = {"status": {"conditions": [*known, theirs]}}
            cluster.plane.request("PATCH", path, patch, "application/merge-patch+json")
        return None

    proxy.rule = rule
    cluster.add_nodes(1, cpu=4)
    cluster.submit("train", pods=2)
    cluster.start_scheduler("--leader-elect=false", server=proxy.url)
    cluster.wait(lambda: cluster.phase("train") == "Running", "the phase Running")
    types = {condition["type"] for condition in cluster.group("train")["status"]["conditions"]}
    assert types == {"Theirs", "Scheduled"}
    patches = [seen.status for seen in proxy.seen if (seen.method, seen.path) == ("PATCH", path)]
    assert patches[:2] == [409, 200]
