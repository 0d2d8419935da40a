"""Kubernetes' own groups on a real API server: what we do with them, and what kube-scheduler does with the same."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from typer.testing import CliRunner

from stromboli.cli.main import app
from tests.kubernetes.stage import NAMESPACE, POLICY, Scheduler, Stage

GATES = "GenericWorkload=true,GangScheduling=true,WorkloadAwarePreemption=true"
TOPOLOGY = ",TopologyAwareWorkloadScheduling=true"
GROUPS = f"/apis/scheduling.k8s.io/v1alpha2/namespaces/{NAMESPACE}/podgroups"
OURS, THEIRS = "volcano", "default-scheduler"
pytestmark = pytest.mark.real_only
PREEMPT = POLICY.replace("backfill", "preempt, backfill")


@pytest.fixture(scope="module")
def theatre(built: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    offered = ("--runtime-config=scheduling.k8s.io/v1alpha2=true", f"--feature-gates={GATES}{TOPOLOGY}")
    oracle = (f"--feature-gates={GATES}",)
    folder = tmp_path_factory.mktemp("native")
    with Stage(folder, api_server_flags=offered, scheduler_flags=oracle) as stage:
        yield stage


@pytest.fixture
def stage(theatre: Stage) -> Iterator[Stage]:
    yield theatre
    theatre.tidy()
    for one in theatre.read(GROUPS)["items"]:
        path = f"{GROUPS}/{one['metadata']['name']}"
        kept = {"metadata": {"finalizers": None}}  # a controller, which does not run here, would take it off
        theatre.plane.request("PATCH", path, kept, "application/merge-patch+json")
        theatre.plane.request("DELETE", path)
    theatre.plane.kubectl("delete", "priorityclasses", "urgent", "--ignore-not-found")


@pytest.fixture
def scheduler(stage: Stage) -> Scheduler:
    return stage.start_scheduler()


def group(stage: Stage, name: str, minimum: int = 0, **spec: Any) -> None:
    policy = {"gang": {"minCount": minimum}} if minimum else {"basic": {}}
    stage.plane.apply(
        {
            "apiVersion": "scheduling.k8s.io/v1alpha2",
            "kind": "PodGroup",
            "metadata": {"name": name, "namespace": NAMESPACE},
            "spec": {"schedulingPolicy": policy, **spec},
        }
    )


def pods(
    stage: Stage, name: str, *numbers: int, scheduler: str = OURS, cpu: int = 1, priority: str = ""
) -> None:
    manifests = []
    for number in numbers:
        pod = stage.pod(name, number, cpu, priority)
        del pod["metadata"]["annotations"]
        pod["spec"] |= {"schedulerName": scheduler, "schedulingGroup": {"podGroupName": name}}
        manifests.append(pod)
    stage.plane.apply(*manifests)


def scheduled(stage: Stage, name: str) -> tuple[str, str]:
    """Status and reason of the condition; nothing where there is none."""
    found = stage.read(f"{GROUPS}/{name}").get("status", {}).get("conditions", ())
    return next(
        ((one["status"], one["reason"]) for one in found if one["type"] == "PodGroupScheduled"), ("", "")
    )


def wait_for(stage: Stage, name: str, wanted: tuple[str, str]) -> None:
    stage.wait(lambda: scheduled(stage, name) == wanted, f"{name} to be {wanted}")


# -- alone


def test_a_gang_of_three_holds_two_and_runs_when_the_third_comes(stage: Stage, scheduler: Scheduler) -> None:
    stage.add_nodes(2, cpu=2)
    group(stage, "train", 3)
    pods(stage, "train", 0, 1)
    wait_for(stage, "train", ("False", "Unschedulable"))
    assert not stage.bound("train")
    pods(stage, "train", 2)
    stage.wait_for_running("train", 3)
    wait_for(stage, "train", ("True", "Scheduled"))
    found = stage.read(f"{GROUPS}/train")
    [said] = found["status"]["conditions"]
    assert said.get("observedGeneration") == found["metadata"].get("generation")
    assert scheduler.get("/debug/consistency")[0] == 200
    stage.check()
    events = stage.plane.kubectl("describe", "podgroup.scheduling.k8s.io", "train", "-n", NAMESPACE)
    assert "Unschedulable" in events


def test_the_condition_is_not_written_again_and_again(stage: Stage, scheduler: Scheduler) -> None:
    stage.add_nodes(1, cpu=1)
    group(stage, "train", 2)
    pods(stage, "train", 0, 1)
    wait_for(stage, "train", ("False", "Unschedulable"))
    before = stage.read(f"{GROUPS}/train")["metadata"]["resourceVersion"]
    assert stage.steady(
        3.0, lambda: bool(stage.read(f"{GROUPS}/train")["metadata"]["resourceVersion"] == before)
    )


def test_pods_may_come_before_their_group_and_are_told_what_they_wait_for(
    stage: Stage, scheduler: Scheduler
) -> None:
    stage.add_nodes(1, cpu=4)
    pods(stage, "late", 0, 1)
    stage.wait(
        lambda: any(
            "waiting for its PodGroup" in one.get("message", "")
            for one in stage.pods("late")[0]["status"].get("conditions", ())
        ),
        "the pod to say why",
    )
    group(stage, "late", 2)
    stage.wait_for_running("late", 2)


def test_the_urgent_take_the_place_of_a_whole_group_that_goes_as_one(stage: Stage) -> None:
    stage.policy.write_text(PREEMPT)
    stage.plane.apply(
        {
            "apiVersion": "scheduling.k8s.io/v1",
            "kind": "PriorityClass",
            "metadata": {"name": "urgent"},
            "value": 1000,
        }
    )
    stage.add_nodes(2, cpu=2)
    stage.start_scheduler()
    group(stage, "old", 2, disruptionMode="PodGroup")
    pods(stage, "old", 0, 1, 2, 3)
    stage.wait_for_running("old", 4)
    group(stage, "new", 1, priorityClassName="urgent")
    pods(stage, "new", 0, priority="urgent")
    stage.wait_for_running("new", 1)
    stage.wait(lambda: not stage.pods("old"), "all of the group to be gone")
    assert stage.read(f"{GROUPS}/new")["spec"]["priority"] == 1000


def test_a_group_that_asks_for_what_we_cannot_do_is_told_so(stage: Stage, scheduler: Scheduler) -> None:
    stage.add_nodes(1, cpu=4)
    group(stage, "near", 1, schedulingConstraints={"topology": [{"key": "rack"}]})
    pods(stage, "near", 0)
    stage.wait(lambda: "Invalid" in dict(stage.events("near")), "the event")
    assert dict(stage.events("near"))["Invalid"].endswith("is not supported by this scheduler")
    assert not stage.bound("near")


def test_a_dump_replays_with_its_native_groups(stage: Stage, scheduler: Scheduler) -> None:
    stage.add_nodes(1, cpu=1)
    group(stage, "train", 2)
    pods(stage, "train", 0, 1)
    wait_for(stage, "train", ("False", "Unschedulable"))
    status, path = scheduler.get("/debug/dump", method="POST")
    assert status == 200, path
    [file] = stage.folder.glob("snapshot-*.json")
    objects = json.loads(file.read_text())["objects"]
    [found] = [one for one in objects if one["apiVersion"] == "scheduling.k8s.io/v1alpha2"]
    assert (found["kind"], found["metadata"]["name"]) == ("PodGroup", "train")
    done = CliRunner().invoke(app, ["plan", "-f", str(file), "-o", "json"])
    assert done.exit_code == 0, done.output
    assert list(json.loads(done.stdout)["pending"]) == [f"{NAMESPACE}/train"]
    file.unlink()


# -- the same story, told to kube-scheduler and to us


STORIES = ("starts", "does not fit", "fits later", "basic", "extra pods do not fit")


def tell(stage: Stage, story: str, scheduler: str, name: str) -> tuple[tuple[str, str], int]:
    """One story on a stage with one node of two CPUs: the condition at its end, and how many pods have a node."""
    minimum, numbers, cpu = {
        "starts": (2, (0, 1), 1),
        "does not fit": (3, (0, 1, 2), 1),
        "fits later": (3, (0, 1, 2), 1),
        "basic": (0, (0, 1, 2), 1),
        "extra pods do not fit": (2, (0, 1, 2), 1),
    }[story]
    group(stage, name, minimum)
    pods(stage, name, *numbers, scheduler=scheduler, cpu=cpu)
    stage.wait(lambda: scheduled(stage, name) != ("", ""), f"{scheduler} to say something")
    if story == "fits later":
        assert scheduled(stage, name) == ("False", "Unschedulable")
        stage.add_nodes(1, cpu=2, prefix=f"more-{name}")
        wait_for(stage, name, ("True", "Scheduled"))
    stage.wait(lambda: len(stage.bound(name)) in (0, 2, 3), "the binds")
    return scheduled(stage, name), len(stage.bound(name))


@pytest.mark.parametrize("story", STORIES)
def test_we_say_of_a_group_what_kube_scheduler_says(stage: Stage, story: str) -> None:
    told = {}
    for scheduler in (THEIRS, OURS):
        stage.add_nodes(1, cpu=2)
        name = f"{story.replace(' ', '-')}-{scheduler}"
        if scheduler == OURS:
            stage.start_scheduler()
            told[scheduler] = tell(stage, story, scheduler, name)
        else:
            stage.plane.start("kube-scheduler")
            try:
                told[scheduler] = tell(stage, story, scheduler, name)
            finally:
                stage.plane.stop("kube-scheduler")
        stage.tidy()
    assert told[OURS] == told[THEIRS]
