"""Every request that a gang, a Job and a plain pod cost the API server, from creation to Running."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from tests.kubernetes.faults import Between
from tests.kubernetes.scheduler_cluster import NAMESPACE, VOLCANO, SchedulerCluster

TOLD = ("Pod", "PodGroup", "Job")


class Asked:
    """What a scheduler behind a proxy wrote."""

    def __init__(self, proxy: Between) -> None:
        self._proxy = proxy

    def bodies(self, wanted: Callable[[str, str], bool]) -> list[Any]:
        return [
            json.loads(seen.body)
            for seen in self._proxy.seen
            if seen.method != "GET" and wanted(seen.method, seen.path)
        ]

    @property
    def binds(self) -> int:
        return len(self.bodies(lambda _, path: path.endswith("/binding")))

    @property
    def pod_statuses(self) -> list[Any]:
        return self.bodies(lambda _, path: "/pods/" in path and path.endswith("/status"))

    def phases(self, group: str) -> list[str]:
        """Those written for a group whose name begins so; one after the other only where they differ."""
        patches = self.bodies(lambda _, path: f"/podgroups/{group}" in path)
        written = [patch["status"]["phase"] for patch in patches]
        return [phase for number, phase in enumerate(written) if written[number - 1 : number] != [phase]]

    def events(self) -> dict[tuple[str, str], int]:
        """How many, by kind and reason."""
        counts: dict[tuple[str, str], int] = {}
        for event in self.bodies(lambda method, path: path.endswith("/events") and method == "POST"):
            if event["involvedObject"]["kind"] in TOLD:
                key = event["involvedObject"]["kind"], event["reason"]
                counts[key] = counts.get(key, 0) + 1
        return counts


def wait_until_counted(cluster: SchedulerCluster, group: str, running: int) -> None:
    """Until the status of a group shows that so many pods run: nothing is left to be written then."""

    def counted() -> bool:
        groups = cluster.read(f"{VOLCANO}/namespaces/{NAMESPACE}/podgroups")["items"]
        mine = [entry for entry in groups if entry["metadata"]["name"].startswith(group)]
        return bool(mine) and mine[0].get("status", {}).get("running", 0) == running

    cluster.wait(counted, f"{running} running pods in the status of {group}")


def test_a_gang_and_a_single_pod_that_exist_already(cluster: SchedulerCluster, proxy: Between) -> None:
    cluster.add_nodes(3, cpu=16)
    cluster.submit("train", pods=20)
    cluster.submit("single", pods=1)
    cluster.start_scheduler("--leader-elect=false", server=proxy.url)
    cluster.wait_for_running("train", 20)
    wait_until_counted(cluster, "train", 20)
    wait_until_counted(cluster, "single", 1)
    asked = Asked(proxy)
    cluster.wait(lambda: sum(asked.events().values()) == 22, "the events")
    assert asked.binds == 21
    assert asked.pod_statuses == []
    assert (asked.phases("train"), asked.phases("single")) == (["Running"], ["Running"])
    assert asked.events() == {("Pod", "Scheduled"): 21, ("PodGroup", "Scheduled"): 1}


def test_a_job_whose_pods_its_controller_makes_and_a_plain_pod_that_waits(
    cluster: SchedulerCluster, proxy: Between
) -> None:
    cluster.add_nodes(1, cpu=16)
    cluster.start_controllers("job-controller", "pg-controller")
    cluster.start_scheduler("--leader-elect=false", server=proxy.url)
    container = {"name": "main", "image": "none", "resources": {"requests": {"cpu": "1"}}}
    template = {"metadata": {"labels": {"job": "train"}}, "spec": {"containers": [container]}}
    job = {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": "train", "namespace": NAMESPACE},
        "spec": {
            "schedulerName": "volcano",
            "minAvailable": 5,
            "tasks": [{"name": "worker", "replicas": 5, "template": template}],
        },
    }
    plain = cluster.pod("plain", 0, cpu=99)
    del plain["metadata"]["annotations"]
    cluster.plane.apply(job, plain)
    cluster.wait_for_running("train", 5)
    wait_until_counted(cluster, "train", 5)
    asked = Asked(proxy)
    cluster.wait(lambda: ("Pod", "FailedScheduling") in asked.events(), "the event of the pod that waits")
    cluster.wait(lambda: sum(asked.events().values()) == 7, "the events")
    assert asked.binds == 5
    assert len(asked.pod_statuses) == 1
    assert asked.phases("train") == ["Inqueue", "Running"]
    assert asked.events() == {
        ("Pod", "Scheduled"): 5,
        ("PodGroup", "Scheduled"): 1,
        ("Pod", "FailedScheduling"): 1,
    }
