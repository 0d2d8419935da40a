"""Kubernetes' own groups on an API server: what we do with them, and what kube-scheduler does with the same."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from stromboli.cli.main import app
from tests.kubernetes.scheduler_cluster import NAMESPACE, POLICY, Scheduler, SchedulerCluster
from tests.kubernetes.servers import REAL, chosen

GATES = ",".join(
    f"{gate}=true"
    for gate in (
        "GenericWorkload",
        "GangScheduling",
        "WorkloadAwarePreemption",
        "TopologyAwareWorkloadScheduling",
        "DRAWorkloadResourceClaims",
    )
)
OFFERED = ("--runtime-config=scheduling.k8s.io/v1alpha2=true", f"--feature-gates={GATES}")
"""What an API server must be told to have these kinds."""
GROUPS = f"/apis/scheduling.k8s.io/v1alpha2/namespaces/{NAMESPACE}/podgroups"
OURS, THEIRS = "volcano", "default-scheduler"
real_only = pytest.mark.real_only
PREEMPT = POLICY.replace("backfill", "preempt, backfill")


@pytest.fixture(scope="module")
def shared_cluster(built: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SchedulerCluster]:
    gates = (f"--feature-gates={GATES}",)
    flags = {"api_server_flags": OFFERED, "scheduler_flags": gates} if chosen() == REAL else {}
    with SchedulerCluster(tmp_path_factory.mktemp("native"), **flags) as cluster:
        yield cluster


@pytest.fixture
def cluster(shared_cluster: SchedulerCluster) -> Iterator[SchedulerCluster]:
    yield shared_cluster
    shared_cluster.reset()
    remove_groups(shared_cluster)


def remove_groups(cluster: SchedulerCluster) -> None:
    for left in cluster.read(GROUPS)["items"]:
        path = f"{GROUPS}/{left['metadata']['name']}"
        patch = {"metadata": {"finalizers": None}}  # a controller, which does not run here, would remove them
        cluster.plane.request("PATCH", path, patch, "application/merge-patch+json")
        cluster.plane.request("DELETE", path)


@pytest.fixture
def scheduler(cluster: SchedulerCluster) -> Scheduler:
    return cluster.start_scheduler()


def group(cluster: SchedulerCluster, name: str, minimum: int = 0, **spec: Any) -> None:
    policy = {"gang": {"minCount": minimum}} if minimum else {"basic": {}}
    cluster.plane.apply(
        {
            "apiVersion": "scheduling.k8s.io/v1alpha2",
            "kind": "PodGroup",
            "metadata": {"name": name, "namespace": NAMESPACE},
            "spec": {"schedulingPolicy": policy, **spec},
        }
    )


def pods(
    cluster: SchedulerCluster,
    name: str,
    *numbers: int,
    scheduler: str = OURS,
    cpu: int = 1,
    priority: str = "",
) -> None:
    manifests = []
    for number in numbers:
        pod = cluster.pod(name, number, cpu, priority)
        del pod["metadata"]["annotations"]
        pod["spec"] |= {"schedulerName": scheduler, "schedulingGroup": {"podGroupName": name}}
        manifests.append(pod)
    cluster.plane.apply(*manifests)


def scheduled(cluster: SchedulerCluster, name: str) -> tuple[str, str]:
    """Status and reason of the condition; empty where there is none."""
    for condition in cluster.read(f"{GROUPS}/{name}").get("status", {}).get("conditions", ()):
        if condition["type"] == "PodGroupScheduled":
            return condition["status"], condition["reason"]
    return "", ""


def wait_for(cluster: SchedulerCluster, name: str, wanted: tuple[str, str]) -> None:
    cluster.wait(lambda: scheduled(cluster, name) == wanted, f"{name} to be {wanted}")


# -- alone


def test_a_gang_of_three_holds_two_and_runs_when_the_third_comes(
    cluster: SchedulerCluster, scheduler: Scheduler
) -> None:
    cluster.add_nodes(2, cpu=2)
    group(cluster, "train", 3)
    pods(cluster, "train", 0, 1)
    wait_for(cluster, "train", ("False", "Unschedulable"))
    assert not cluster.bound("train")
    pods(cluster, "train", 2)
    cluster.wait_for_running("train", 3)
    wait_for(cluster, "train", ("True", "Scheduled"))
    written = cluster.read(f"{GROUPS}/train")
    [condition] = written["status"]["conditions"]
    assert condition.get("observedGeneration", 0) == written["metadata"].get("generation", 0)
    assert scheduler.get("/debug/consistency")[0] == 200
    cluster.check_capacity()
    events = cluster.plane.kubectl("describe", "podgroup.scheduling.k8s.io", "train", "-n", NAMESPACE)
    assert "Unschedulable" in events


def test_the_condition_is_not_written_again_and_again(
    cluster: SchedulerCluster, scheduler: Scheduler
) -> None:
    cluster.add_nodes(1, cpu=1)
    group(cluster, "train", 2)
    pods(cluster, "train", 0, 1)
    wait_for(cluster, "train", ("False", "Unschedulable"))

    def version() -> str:
        return str(cluster.read(f"{GROUPS}/train")["metadata"]["resourceVersion"])

    def stays() -> bool:
        before = version()
        return cluster.holds_for(3.0, lambda: version() == before)

    cluster.wait(stays, "the condition to stay, once both pods were seen")


def test_pods_may_come_before_their_group_and_are_told_what_they_wait_for(
    cluster: SchedulerCluster, scheduler: Scheduler
) -> None:
    cluster.add_nodes(1, cpu=4)
    pods(cluster, "late", 0, 1)
    cluster.wait(
        lambda: any(
            f"PodGroup {NAMESPACE}/late of scheduling.k8s.io does not exist" in condition.get("message", "")
            for condition in cluster.pods("late")[0]["status"].get("conditions", ())
        ),
        "the pod to say why",
    )
    group(cluster, "late", 2)
    cluster.wait_for_running("late", 2)


def test_the_urgent_take_the_place_of_a_whole_group_that_goes_as_one(cluster: SchedulerCluster) -> None:
    cluster.policy.write_text(PREEMPT)
    cluster.plane.apply(
        {
            "apiVersion": "scheduling.k8s.io/v1",
            "kind": "PriorityClass",
            "metadata": {"name": "urgent-group"},
            "value": 1000,
        }
    )
    cluster.add_nodes(2, cpu=2)
    cluster.start_scheduler()
    group(cluster, "old", 2, disruptionMode="PodGroup")
    pods(cluster, "old", 0, 1, 2, 3)
    cluster.wait_for_running("old", 4)
    group(cluster, "new", 1, priorityClassName="urgent-group")
    pods(cluster, "new", 0, priority="urgent-group")
    cluster.wait_for_running("new", 1)
    cluster.wait(lambda: not cluster.pods("old"), "all of the group to be gone")
    assert cluster.read(f"{GROUPS}/new")["spec"]["priority"] == 1000


def test_a_dump_replays_with_its_native_groups(cluster: SchedulerCluster, scheduler: Scheduler) -> None:
    cluster.add_nodes(1, cpu=1)
    group(cluster, "train", 2)
    pods(cluster, "train", 0, 1)
    wait_for(cluster, "train", ("False", "Unschedulable"))
    status, path = scheduler.get("/debug/dump", method="POST")
    assert status == 200, path
    file = Path(json.loads(path)["file"])
    objects = json.loads(file.read_text())["objects"]
    [dumped] = [object for object in objects if object["apiVersion"] == "scheduling.k8s.io/v1alpha2"]
    assert (dumped["kind"], dumped["metadata"]["name"]) == ("PodGroup", "train")
    done = CliRunner().invoke(app, ["plan", "-f", str(file), "-o", "json"])
    assert done.exit_code == 0, done.output
    assert list(json.loads(done.stdout)["pending"]) == [f"{NAMESPACE}/train"]
    file.unlink()


# -- the same story with kube-scheduler and with us


STORIES = {
    "starts": (2, 2),
    "does not fit": (3, 3),
    "fits later": (3, 3),
    "basic": (0, 3),
    "extra pods do not fit": (2, 3),
}
"""minCount of a group, and how many pods it has, on a cluster with one node of two CPUs."""
Outcome = tuple[tuple[str, str], int]
"""The group's condition, and how many of its pods are bound."""


def settled(cluster: SchedulerCluster, name: str) -> Outcome:
    """The outcome that stays: pods are created one by one, so a group may be unschedulable for a moment."""

    def outcome() -> Outcome:
        return scheduled(cluster, name), len(cluster.bound(name))

    def stays() -> bool:
        current = outcome()
        return current[0] != ("", "") and cluster.holds_for(3.0, lambda: outcome() == current)

    cluster.wait(stays, f"{name} to settle")
    return outcome()


def play(cluster: SchedulerCluster, story: str, scheduler: str) -> Outcome:
    name = f"{story.replace(' ', '-')}-{scheduler}"
    minimum, count = STORIES[story]
    cluster.add_nodes(1, cpu=2)
    group(cluster, name, minimum)
    pods(cluster, name, *range(count), scheduler=scheduler)
    outcome = settled(cluster, name)
    if story == "fits later":
        assert outcome == (("False", "Unschedulable"), 0)
        cluster.add_nodes(1, cpu=2, prefix=f"more-{name}")
        wait_for(cluster, name, ("True", "Scheduled"))
        outcome = settled(cluster, name)
    return outcome


@real_only
@pytest.mark.parametrize("story", STORIES)
def test_we_decide_on_a_group_as_kube_scheduler_does(cluster: SchedulerCluster, story: str) -> None:
    cluster.plane.start("kube-scheduler")
    try:
        theirs = play(cluster, story, THEIRS)
    finally:
        cluster.plane.stop("kube-scheduler")
    cluster.reset()
    cluster.start_scheduler()
    assert play(cluster, story, OURS) == theirs


# -- in the domains of a label

TOPOLOGIES: dict[str, tuple[str, int, int]] = {
    "one-rack-fits": ("a2 b2 b2", 3, 3),
    "no-rack-fits": ("a2 a2 b2 b2", 5, 5),
    "fullest": ("a4 a4 b4 c4 c4 c4", 3, 3),
    "most-pods": ("a3 b4 b4", 3, 5),
    "some-of-it": ("a3 b2 b2", 3, 5),
    "basic": ("a2 b3", 0, 4),
    "label-missing": ("-8", 2, 2),
}
"""Racks and sizes of nodes, minCount of a group, and how many pods it has; each story has its own label."""


def racks(cluster: SchedulerCluster, story: str) -> dict[str, str]:
    """The nodes of a story with their racks, added to the cluster."""
    added = {}
    for place, node in enumerate(TOPOLOGIES[story][0].split()):
        prefix = f"{story}-{place}"
        labels = {} if node[0] == "-" else {story: node[0]}
        cluster.add_nodes(1, int(node[1:]), prefix, labels)
        added[f"{prefix}-0"] = node[0]
    return added


def chosen_racks(cluster: SchedulerCluster, scheduler: str) -> dict[str, list[str]]:
    """In which racks the pods of each story are when nothing changes any more."""
    where: dict[str, str] = {}
    for story, (_, minimum, count) in TOPOLOGIES.items():
        where |= racks(cluster, story)
        group(cluster, story, minimum, schedulingConstraints={"topology": [{"key": story}]})
        pods(cluster, story, *range(count), scheduler=scheduler)
    if scheduler == OURS:
        cluster.start_scheduler()
    else:
        cluster.plane.start("kube-scheduler")
    cluster.wait(lambda: all(scheduled(cluster, story)[0] for story in TOPOLOGIES), "a condition of each")
    cluster.wait(lambda: stays(cluster), "pods to settle")
    return {
        story: sorted(where[pod["spec"]["nodeName"]] for pod in cluster.bound(story)) for story in TOPOLOGIES
    }


def stays(cluster: SchedulerCluster) -> bool:
    before = len(cluster.bound())
    return cluster.holds_for(3.0, lambda: len(cluster.bound()) == before)


@real_only
def test_we_choose_domains_as_kube_scheduler_does(cluster: SchedulerCluster) -> None:
    try:
        theirs = chosen_racks(cluster, THEIRS)
    finally:
        cluster.plane.stop("kube-scheduler")
    cluster.reset()
    remove_groups(cluster)
    assert chosen_racks(cluster, OURS) == theirs
    assert theirs["one-rack-fits"] == ["b"] * 3
