"""Pods that succeeded and are deleted while no controller runs."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.kubernetes.controlling import ControllerCluster
from tests.kubernetes.servers import control_plane

SPACE = "default"


@pytest.fixture
def cluster(built: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControllerCluster]:
    folder = tmp_path_factory.mktemp("succeeded")
    with control_plane(folder) as plane:
        made = ControllerCluster(folder, plane)
        try:
            made.install()
            yield made
        finally:
            made.close()


def test_succeeded_pods_that_are_deleted_while_no_controller_runs_are_not_created_again(
    cluster: ControllerCluster,
) -> None:
    def succeeded(name: str) -> int:
        return int(cluster.read("jobs", name, SPACE).get("status", {}).get("succeeded", 0))

    controllers = cluster.start()
    pod = {"spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "a:1"}]}}
    tasks = [{"name": "work", "replicas": 3, "template": pod}]
    spec = {"minAvailable": 3, "queue": "default", "schedulerName": "volcano", "tasks": tasks}
    cluster.make("jobs", {"metadata": {"name": "j"}, "spec": spec}, SPACE)
    cluster.wait(lambda: len(cluster.names("podgroups", SPACE)) == 1, "the PodGroup")
    (group,) = cluster.names("podgroups", SPACE)
    cluster.patch("podgroups", group, {"status": {"phase": "Inqueue"}}, SPACE)
    pods = [f"j-work-{index}" for index in range(3)]
    cluster.wait(lambda: cluster.names("pods", SPACE) == pods, "the pods")
    for name, phase in zip(pods, ("Succeeded", "Running", "Succeeded"), strict=True):
        cluster.patch("pods", name, {"status": {"phase": phase}}, SPACE, "status")
    cluster.wait(lambda: succeeded("j") == 2, "the pods to be counted")
    controllers.process.kill()
    controllers.process.wait(30)
    for name in pods:
        cluster.plane.request("DELETE", f"{cluster.path('pods', name, SPACE)}?gracePeriodSeconds=0")
    assert cluster.names("pods", SPACE) == []

    cluster.start()
    cluster.wait(lambda: cluster.names("pods", SPACE) != [], "the pod that had not succeeded")
    assert cluster.names("pods", SPACE) == ["j-work-1"]
    spec = cluster.read("podgroups", group, SPACE)["spec"]
    assert (spec["minMember"], spec["minTaskMember"]) == (1, {"work": 1})
    cluster.patch("pods", "j-work-1", {"status": {"phase": "Succeeded"}}, SPACE, "status")
    cluster.wait(
        lambda: cluster.read("jobs", "j", SPACE)["status"]["state"]["phase"] == "Completed", "the job"
    )
    assert succeeded("j") == 3
