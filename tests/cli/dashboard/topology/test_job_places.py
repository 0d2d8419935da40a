"""Counts of the pods of jobs are those of all pods, whatever came, went or changed."""

from __future__ import annotations

import random
from collections import Counter

from stromboli.api.decoding import decode
from stromboli.cli.dashboard.topology.job_places import JobPlaces
from stromboli.cli.live.cluster_records import ClusterRecords
from tests.cli.dashboard.network_manifests import pod, pod_group
from tests.manifests import group

NODES = ("n-1", "n-2", "n-3")


def test_counts_follow_pods_that_come_start_end_and_go() -> None:
    choice, records = random.Random(5), ClusterRecords()
    for name in ("a", "b"):
        records.put(decode(pod_group(name)), new=True)
    places = JobPlaces(records)
    for _ in range(400):
        manifest = pod(
            f"p-{choice.randrange(30)}",
            on=choice.choice(["", *NODES]),
            cpu=choice.choice(["1", "2"]),
            group=choice.choice(["", "a", "b"]),
            phase=choice.choice(["", "", "Succeeded"]),
        )
        object = decode(manifest)
        assert object is not None
        if choice.random() < 0.3:
            records.drop(object)
        else:
            records.put(object, new=True)
        counted = [each for each in records.pods.values() if each.group and not each.finished]
        for nodes in (NODES, NODES[:1]):
            there = Counter(each.group for each in counted if each.node in nodes)
            assert places.pods_by_job(nodes) == there
            assert places.job_count(nodes) == len(there)
            assert any(map(places.has_job, nodes)) == bool(there)
        waiting = Counter(each.request["cpu"] for each in counted if not each.node)
        common = places.common_waiting_request()
        assert (common is None) == (not waiting)
        if common is not None:
            assert waiting[common["cpu"]] == max(waiting.values())


def test_pods_that_were_there_before_count_too() -> None:
    records = ClusterRecords()
    object = decode(pod("p", on="n-1", group="a"))
    assert object is not None
    records.put(object, new=True)
    assert JobPlaces(records).pods_by_job(["n-1"]) == {"default/a": 1}


def test_a_pod_whose_podgroup_is_not_there_is_of_no_job() -> None:
    records = ClusterRecords()
    places = JobPlaces(records)
    records.put(decode(pod("p", on="n-1", group="late")), new=True)
    assert places.job_count(["n-1"]) == 0
    records.put(decode(pod_group("late")), new=True)
    assert places.job_count(["n-1"]) == 1


def test_the_pods_to_come_of_a_gang_that_is_not_let_in_count_by_an_equal_part_of_what_it_asks_for() -> None:
    records = ClusterRecords()
    places = JobPlaces(records)
    asked = {"cpu": "60", "nvidia.com/gpu": "240", "pods": "30"}
    records.put(decode(group("big", 30, phase="Pending", minResources=asked)), new=True)
    records.put(decode(pod("p", cpu="1", group="a")), new=True)
    assert places.common_waiting_request() == {"cpu": 2000, "nvidia.com/gpu": 8000}
    records.put(decode(group("big", 30, minResources=asked)), new=True)
    common = places.common_waiting_request()
    assert common is not None
    assert common["cpu"] == 1000
