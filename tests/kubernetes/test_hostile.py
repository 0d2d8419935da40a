"""Hostile objects on an API server: the scheduler stays up, says once what it cannot use, and schedules the rest."""

from __future__ import annotations

import copy
import json
import random
import urllib.error
from collections.abc import Iterator
from typing import Any

import pytest

from stromboli.api.types.kinds import kind_of
from stromboli.kube.api_resources import RESOURCES
from tests.kube.test_hostile import NOTES, ODD, places, templates
from tests.kubernetes.scheduler_cluster import NAMESPACE, SchedulerCluster

ODD_VALUES: tuple[Any, ...] = (
    *ODD,
    None,
    True,
    0,
    -1,
    2**31,
    2**63 - 1,
    2**70,
    1.5,
    [],
    {},
    ["a"],
    {"a": "b"},
)


SPOILT = [
    manifest for manifest in templates() if kind_of("", manifest["kind"]) and manifest["kind"] != "Namespace"
]


def spoiled(dice: random.Random, number: int) -> dict[str, Any]:
    """An object as it should be, with a few things in it that should not."""
    manifest = copy.deepcopy(dice.choice(SPOILT))
    kind = manifest["kind"]
    name = f"{manifest['metadata']['name']}-{number}"
    for _ in range(dice.randrange(1, 4)):
        holder, key = dice.choice(places(manifest))
        holder[key] = dice.choice(ODD_VALUES)
    notes = {key: dice.choice(ODD) for key in dice.sample(NOTES, 2)}
    resource = RESOURCES[kind_of("", kind)]
    meta = {
        "name": name,
        "labels": {"hostile": "yes"},
        "annotations": {"scheduling.k8s.io/group-name": "bad", **notes},
    }
    manifest |= {"apiVersion": resource.api_version, "kind": kind, "metadata": meta}
    return manifest


@pytest.fixture
def swept(cluster: SchedulerCluster) -> Iterator[SchedulerCluster]:
    """A cluster from which hostile objects of all kinds are taken away again."""
    yield cluster
    for kind in {manifest["kind"] for manifest in SPOILT}:
        path = RESOURCES[kind_of("", kind)].path(NAMESPACE)
        cluster.plane.request("DELETE", f"{path}?labelSelector=hostile%3Dyes&gracePeriodSeconds=0")


def test_hostile_objects_are_told_of_once_and_the_others_are_scheduled(swept: SchedulerCluster) -> None:
    cluster = swept
    dice = random.Random(5)
    cluster.add_nodes(2, cpu=4)
    scheduler = cluster.start_scheduler()
    taken = 0
    for number in range(250):
        manifest = spoiled(dice, number)
        resource = RESOURCES[kind_of("", manifest["kind"])]
        try:
            cluster.plane.request("POST", resource.path(NAMESPACE), manifest)
            taken += 1
        except urllib.error.HTTPError as error:
            error.close()
        if number == 125:
            cluster.submit("early", pods=2, priority=_urgent(cluster))
    cluster.submit("late", pods=2, priority=_urgent(cluster))
    assert taken > 40
    cluster.wait_for_running("early", 2)
    cluster.wait_for_running("late", 2)
    assert scheduler.process.poll() is None
    assert "the loop broke down" not in scheduler.output
    assert "the cycle is lost" not in scheduler.output
    assert json.loads(scheduler.get("/debug/consistency")[1])["consistent"]
    events = cluster.read("/api/v1/events")["items"]
    refusals = [
        (event["involvedObject"]["uid"], event.get("count", 1))
        for event in events
        if event["reason"] == "Invalid"
    ]
    assert refusals
    assert len(refusals) == len({uid for uid, _ in refusals})
    assert all(count == 1 for _, count in refusals)


def _urgent(cluster: SchedulerCluster) -> str:
    cluster.plane.apply(
        {
            "apiVersion": "scheduling.k8s.io/v1",
            "kind": "PriorityClass",
            "metadata": {"name": "urgent"},
            "value": 1_000_000,
        }
    )
    return "urgent"
