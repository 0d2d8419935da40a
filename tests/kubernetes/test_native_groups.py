"""Kubernetes' own groups on a real API server: what we do with them, and what kube-scheduler does with the same."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from typer.testing import CliRunner

from stromboli.cli.main import app
from tests.kubernetes.scheduler_cluster import NAMESPACE, POLICY, Scheduler, SchedulerCluster

GATES = "GenericWorkload=true,GangScheduling=true,WorkloadAwarePreemption=true"
TOPOLOGY = ",TopologyAwareWorkloadScheduling=true"
GROUPS = f"/apis/scheduling.k8s.io/v1alpha2/namespaces/{NAMESPACE}/podgroups"
OURS, THEIRS = "volcano", "default-scheduler"
pytestmark = pytest.mark.real_only
PREEMPT = POLICY.replace("backfill", "preempt, backfill")


@pytest.fixture(scope="module")
def shared_cluster(built: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SchedulerCluster]:
    offered = ("--runtime-config=scheduling.k8s.io/v1alpha2=true", f"--feature-gates={GATES}{TOPOLOGY}")
    oracle = (f"--feature-gates={GATES}",)
    folder = tmp_path_factory.mktemp("native")
    with SchedulerCluster(folder, api_server_flags=offered, scheduler_flags=oracle) as cluster:
        yield cluster


@pytest.fixture
def cluster(shared_cluster: SchedulerCluster) -> Iterator[SchedulerCluster]:
    yield shared_cluster
    shared_cluster.reset()
    for one in shared_cluster.read(GROUPS)["items"]:
        path = f"{GROUPS}/{one['metadata']['name']}"
        kept = {"metadata": {"finalizers": None}}  # a controller, which does not run here, would take it off
        shared_cluster.plane.request("PATCH", path, kept, "application/merge-patch+json")
        shared_cluster.plane.request("DELETE", path)
    shared_cluster.plane.kubectl("delete", "priorityclasses", "urgent", "--ignore-not-found")


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
    """Status and reason of the condition; nothing where there is none."""
    found = cluster.read(f"{GROUPS}/{name}").get("status", {}).get("conditions", ())
    return next(
        ((one["status"], one["reason"]) for one in found if one["type"] == "PodGroupScheduled"), ("", "")
    )


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
    found = cluster.read(f"{GROUPS}/train")
    [said] = found["status"]["conditions"]
    assert said.get("observedGeneration") == found["metadata"].get("generation")
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
    before = cluster.read(f"{GROUPS}/train")["metadata"]["resourceVersion"]
    assert cluster.holds_for(
        3.0, lambda: bool(cluster.read(f"{GROUPS}/train")["metadata"]["resourceVersion"] == before)
    )


def test_pods_may_come_before_their_group_and_are_told_what_they_wait_for(
    cluster: SchedulerCluster, scheduler: Scheduler
) -> None:
    cluster.add_nodes(1, cpu=4)
    pods(cluster, "late", 0, 1)
    cluster.wait(
        lambda: any(
            "waiting for its PodGroup" in one.get("message", "")
            for one in cluster.pods("late")[0]["status"].get("conditions", ())
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
            "metadata": {"name": "urgent"},
            "value": 1000,
        }
    )
    cluster.add_nodes(2, cpu=2)
    cluster.start_scheduler()
    group(cluster, "old", 2, disruptionMode="PodGroup")
    pods(cluster, "old", 0, 1, 2, 3)
    cluster.wait_for_running("old", 4)
    group(cluster, "new", 1, priorityClassName="urgent")
    pods(cluster, "new", 0, priority="urgent")
    cluster.wait_for_running("new", 1)
    cluster.wait(lambda: not cluster.pods("old"), "all of the group to be gone")
    assert cluster.read(f"{GROUPS}/new")["spec"]["priority"] == 1000


def test_a_group_that_asks_for_what_we_cannot_do_is_told_so(
    cluster: SchedulerCluster, scheduler: Scheduler
) -> None:
    cluster.add_nodes(1, cpu=4)
    group(cluster, "near", 1, schedulingConstraints={"topology": [{"key": "rack"}]})
    pods(cluster, "near", 0)
    cluster.wait(lambda: "Invalid" in dict(cluster.events("near")), "the event")
    assert dict(cluster.events("near"))["Invalid"].endswith("is not supported by this scheduler")
    assert not cluster.bound("near")


def test_a_dump_replays_with_its_native_groups(cluster: SchedulerCluster, scheduler: Scheduler) -> None:
    cluster.add_nodes(1, cpu=1)
    group(cluster, "train", 2)
    pods(cluster, "train", 0, 1)
    wait_for(cluster, "train", ("False", "Unschedulable"))
    status, path = scheduler.get("/debug/dump", method="POST")
    assert status == 200, path
    [file] = cluster.folder.glob("snapshot-*.json")
    objects = json.loads(file.read_text())["objects"]
    [found] = [one for one in objects if one["apiVersion"] == "scheduling.k8s.io/v1alpha2"]
    assert (found["kind"], found["metadata"]["name"]) == ("PodGroup", "train")
    done = CliRunner().invoke(app, ["plan", "-f", str(file), "-o", "json"])
    assert done.exit_code == 0, done.output
    assert list(json.loads(done.stdout)["pending"]) == [f"{NAMESPACE}/train"]
    file.unlink()


# -- the same story, told to kube-scheduler and to us


STORIES = ("starts", "does not fit", "fits later", "basic", "extra pods do not fit")


def tell(cluster: SchedulerCluster, story: str, scheduler: str, name: str) -> tuple[tuple[str, str], int]:
    """One story on a cluster with one node of two CPUs: the condition at its end, and how many pods have a node."""
    minimum, numbers, cpu = {
        "starts": (2, (0, 1), 1),
        "does not fit": (3, (0, 1, 2), 1),
        "fits later": (3, (0, 1, 2), 1),
        "basic": (0, (0, 1, 2), 1),
        "extra pods do not fit": (2, (0, 1, 2), 1),
    }[story]
    group(cluster, name, minimum)
    pods(cluster, name, *numbers, scheduler=scheduler, cpu=cpu)
    cluster.wait(lambda: scheduled(cluster, name) != ("", ""), f"{scheduler} to say something")
    if story == "fits later":
        assert scheduled(cluster, name) == ("False", "Unschedulable")
        cluster.add_nodes(1, cpu=2, prefix=f"more-{name}")
        wait_for(cluster, name, ("True", "Scheduled"))
    cluster.wait(lambda: len(cluster.bound(name)) in (0, 2, 3), "the binds")
    return scheduled(cluster, name), len(cluster.bound(name))


@pytest.mark.parametrize("story", STORIES)
def test_we_say_of_a_group_what_kube_scheduler_says(cluster: SchedulerCluster, story: str) -> None:
    told = {}
    for scheduler in (THEIRS, OURS):
        cluster.add_nodes(1, cpu=2)
        name = f"{story.replace(' ', '-')}-{scheduler}"
        if scheduler == OURS:
            cluster.start_scheduler()
            told[scheduler] = tell(cluster, story, scheduler, name)
        else:
            cluster.plane.start("kube-scheduler")
            try:
                told[scheduler] = tell(cluster, story, scheduler, name)
            finally:
                cluster.plane.stop("kube-scheduler")
        cluster.reset()
    assert told[OURS] == told[THEIRS]
