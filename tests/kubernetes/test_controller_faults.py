"""Trouble between controllers and the API server: nothing is made twice, nothing is left undone."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator

import pytest

from tests.kubernetes.controlling import ControllerCluster
from tests.kubernetes.faults import Between, Fault, Trouble, between
from tests.kubernetes.servers import control_plane
from tests.kubernetes.test_controllers import GROUP, WITHOUT_JOBS, pod

pytestmark = pytest.mark.filterwarnings(  # connections of the one in between that a test broke off
    "ignore::pytest.PytestUnraisableExceptionWarning"
)
PODS = 60


@pytest.fixture
def troubled(
    built: None, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[ControllerCluster, Between]]:
    folder = tmp_path_factory.mktemp("troubled")
    with control_plane(folder) as plane, between(plane) as someone:
        made = ControllerCluster(folder, plane)
        try:
            made.install()
            yield made, someone
        finally:
            made.close()


def test_a_third_of_all_writes_goes_wrong_and_all_is_right_in_the_end(
    troubled: tuple[ControllerCluster, Between],
) -> None:
    cluster, someone = troubled
    chance = random.Random(7)

    def rule(method: str, path: str, count: int) -> Fault:
        if method == "GET" or "/leases" in path or chance.random() > 0.3:
            return None
        return chance.choice([Trouble.LOSE_ANSWER, Trouble.LOSE_REQUEST, 500, 503, 409])

    someone.rule = rule
    owner = cluster.make("configmaps", {"metadata": {"name": "owner"}}, "default")
    for number in range(PODS):
        cluster.make("pods", pod(f"p-{number}", owner if number % 2 else None), "default")
    for name in ("a", "b"):
        cluster.make("jobtemplates", {"metadata": {"name": name}, "spec": {"minAvailable": 1}}, "default")
    flows = [{"name": "a"}, {"name": "b", "dependsOn": {"targets": ["a"]}}]
    cluster.make("jobflows", {"metadata": {"name": "f"}, "spec": {"flows": flows}}, "default")
    for name in ("team", "one"):
        parent = "root" if name == "team" else "team"
        cluster.make("queues", {"metadata": {"name": name}, "spec": {"weight": 1, "parent": parent}})
    cluster.start(WITHOUT_JOBS, server=someone.url)
    someone.cut_watches()
    cluster.command("CloseQueue", "team")
    cluster.wait(
        lambda: (cluster.state("team"), cluster.state("one")) == ("Closed", "Closed"), "queues to close", 60
    )
    for number, name in enumerate(("a", "b"), start=1):
        cluster.wait(lambda number=number: len(cluster.names("jobs", "default")) == number, f"job {name}", 60)  # type: ignore[misc]
        someone.cut_watches()
        cluster.become(f"f-{name}", "default", "Completed")

    def phase() -> str:
        flow_phase: str = (
            cluster.read("jobflows", "f", "default").get("status", {}).get("state", {}).get("phase", "")
        )
        return flow_phase

    def groups() -> list[str]:
        return [
            pod["metadata"].get("annotations", {}).get(GROUP, "") for pod in cluster.every("pods", "default")
        ]

    cluster.wait(lambda: phase() == "Succeed", "the flow to succeed", 60)
    cluster.wait(lambda: all(groups()), "every pod to have a group", 60)
    cluster.wait(lambda: cluster.names("commands", "default") == [], "the command to be gone", 60)
    assert set(groups()) == set(cluster.names("podgroups", "default"))
    assert len(set(groups())) == PODS // 2 + 1
    made = Counter(
        request.path for request in someone.seen if request.method == "POST" and request.status == 201
    )
    assert made["/apis/batch.volcano.sh/v1alpha1/namespaces/default/jobs"] == 2
