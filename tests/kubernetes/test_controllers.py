"""Queues, PodGroups, TTL, flows and cron jobs on an API server: with the rights of the manifests, once, and quietly."""

from __future__ import annotations

import asyncio
import signal
import time
from collections.abc import Iterator
from typing import Any

import pytest

from stromboli.api.types.meta import ObjectMeta
from stromboli.api.types.scheduling import PodGroup
from stromboli.controllers.api_writer import ApiWriter
from stromboli.kube.api_client import Client
from stromboli.kube.cluster_access import find_access
from stromboli.kube.request import ApiError
from tests.kubernetes.controlling import Scene
from tests.kubernetes.servers import control_plane

WITHOUT_JOBS = "--controllers=*,-job-controller"
GROUP = "scheduling.k8s.io/group-name"

everywhere = pytest.mark.everywhere


@pytest.fixture(scope="module")
def scene(built: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    """Controllers but for that of jobs, whose part the tests play."""
    folder = tmp_path_factory.mktemp("controllers")
    with control_plane(folder) as plane:
        made = Scene(folder, plane)
        try:
            made.install()
            made.start(WITHOUT_JOBS)
            yield made
            (crew,) = (one for one in made.crews if one.process.poll() is None)
            assert crew.stop() == 0, crew.said
            assert "forbidden" not in crew.said.lower(), crew.said
            assert "unexpected" not in crew.said, crew.said
        finally:
            made.close()


@pytest.fixture
def space(scene: Scene, request: pytest.FixtureRequest) -> str:
    name: str = request.node.name.removeprefix("test_").replace("_", "-")[:50].rstrip("-")
    scene.plane.request("POST", "/api/v1/namespaces", {"metadata": {"name": name}})
    return name


def pod(name: str, owner: Any = None, **labels: str) -> dict[str, Any]:
    asks = {"name": "main", "image": "a:1", "resources": {"requests": {"cpu": "1"}}}
    meta: dict[str, Any] = {"name": name, "labels": labels}
    if owner is not None:
        meta["ownerReferences"] = [
            {
                "apiVersion": owner["apiVersion"],
                "kind": owner["kind"],
                "name": owner["metadata"]["name"],
                "uid": owner["metadata"]["uid"],
                "controller": True,
            }
        ]
    return {"metadata": meta, "spec": {"schedulerName": "volcano", "containers": [asks]}}


def workload(name: str, replicas: int, **annotations: str) -> dict[str, Any]:
    template = {
        "metadata": {"labels": {"app": name}},
        "spec": {"containers": [{"name": "main", "image": "a:1"}]},
    }
    marks = {key.replace("__", "/").replace("_", "-"): value for key, value in annotations.items()}
    return {
        "metadata": {"name": name, "annotations": marks},
        "spec": {"replicas": replicas, "selector": {"matchLabels": {"app": name}}, "template": template},
    }


def job(name: str, **spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": name}, "spec": {"minAvailable": 1, "queue": "default", **spec}}


@everywhere
def test_a_queue_is_closed_and_opened_by_commands_with_its_children(scene: Scene, space: str) -> None:
    for name, parent in (("team", "root"), ("one", "team"), ("two", "team")):
        scene.make("queues", {"metadata": {"name": name}, "spec": {"weight": 1, "parent": parent}})
    scene.wait(lambda: {scene.state(name) for name in ("team", "one", "two")} == {"Open"}, "open queues")
    group = {"metadata": {"name": "g"}, "spec": {"minMember": 1, "queue": "one"}}
    scene.make("podgroups", group, space)
    scene.command("CloseQueue", "two")
    scene.wait(lambda: scene.state("two") == "Closed", "the second to close")
    scene.command("CloseQueue", "team")
    scene.wait(
        lambda: (scene.state("team"), scene.state("one")) == ("Closed", "Closing"), "the rest to close"
    )
    scene.delete("podgroups", "g", space)
    scene.wait(lambda: scene.state("one") == "Closed", "the last group to leave")
    scene.command("OpenQueue", "team")
    scene.wait(lambda: (scene.state("team"), scene.state("one")) == ("Open", "Open"), "all to open")
    assert scene.state("two") == "Closed"
    scene.wait(lambda: scene.names("commands", "default") == [], "the commands to be gone")
    assert ("CloseQueue", "Close queue succeed") in scene.events("default", "team")


@everywhere
def test_bare_pods_and_pods_of_owners_get_their_groups(scene: Scene, space: str) -> None:
    scene.make("pods", pod("alone"), space)
    marks = {"scheduling.volcano.sh/group-min-member": "2", "volcano.sh/preemptable": "true"}
    web = workload("web", 3)
    web["metadata"]["annotations"] = marks
    owner = scene.make("replicasets", web, space)
    for number in range(3):
        scene.make("pods", pod(f"web-{number}", owner, app="web"), space)
    state = scene.make(
        "statefulsets",
        {**workload("db", 1), "spec": {**workload("db", 1)["spec"], "serviceName": "db"}},
        space,
    )
    scene.make("pods", pod("db-0", state, app="db"), space)

    def groups() -> dict[str, str]:
        return {
            one["metadata"]["name"]: one["metadata"].get("annotations", {}).get(GROUP, "")
            for one in scene.every("pods", space)
        }

    scene.wait(lambda: all(groups().values()), "every pod to have a group")
    found = groups()
    assert {found[f"web-{number}"] for number in range(3)} == {f"podgroup-{owner['metadata']['uid']}"}
    assert found["db-0"] == f"podgroup-{state['metadata']['uid']}"
    shared = scene.read("podgroups", found["web-0"], space)
    assert shared["spec"]["minMember"] == 2
    assert shared["spec"]["minResources"]["requests.cpu"] == "2"
    assert shared["spec"]["queue"] == "default"
    assert shared["metadata"]["annotations"]["volcano.sh/preemptable"] == "true"
    assert shared["status"] == {"phase": "Pending"}
    assert len(scene.names("podgroups", space)) == 3
    scene.patch("replicasets", "web", {"spec": {"replicas": 0}}, space)
    scene.wait(lambda: len(scene.names("podgroups", space)) == 2, "the group of nobody to go")


@everywhere
def test_a_finished_job_is_deleted_when_its_time_is_over(scene: Scene, space: str) -> None:
    scene.make("jobs", job("brief", ttlSecondsAfterFinished=0), space)
    scene.make("jobs", job("kept", ttlSecondsAfterFinished=10**6), space)
    scene.make("jobs", job("endless"), space)
    for name in ("brief", "kept", "endless"):
        state = {"phase": "Completed", "lastTransitionTime": _stamp(time.time())}
        scene.patch("jobs", name, {"status": {"state": state}}, space, "status")
    scene.wait(lambda: _is_going(scene.read("jobs", "brief", space)), "the job to be deleted")
    assert {"kept", "endless"} <= set(scene.names("jobs", space))


@everywhere
def test_three_jobs_follow_one_another(scene: Scene, space: str) -> None:
    for name in ("fetch", "train", "report"):
        task = {
            "name": "w",
            "replicas": 1,
            "template": {"spec": {"containers": [{"name": "m", "image": "a:1"}]}},
        }
        scene.make(
            "jobtemplates", {"metadata": {"name": name}, "spec": {"minAvailable": 1, "tasks": [task]}}, space
        )
    flows = [
        {"name": "fetch"},
        {"name": "train", "dependsOn": {"targets": ["fetch"]}, "patch": {"jobSpec": {"minAvailable": 0}}},
        {"name": "report", "dependsOn": {"targets": ["fetch", "train"]}},
    ]
    scene.make(
        "jobflows",
        {"metadata": {"name": "nightly"}, "spec": {"flows": flows, "jobRetainPolicy": "retain"}},
        space,
    )
    for number, name in enumerate(("fetch", "train", "report"), start=1):
        scene.wait(lambda number=number: len(scene.names("jobs", space)) == number, f"job {number}")  # type: ignore[misc]
        scene.become(f"nightly-{name}", space, "Running")
        scene.become(f"nightly-{name}", space, "Completed", runningDuration="10s")

    def status() -> Any:
        return scene.read("jobflows", "nightly", space).get("status", {})

    scene.wait(lambda: status().get("state", {}).get("phase") == "Succeed", "the flow to succeed")
    assert status()["completedJobs"] == ["nightly-fetch", "nightly-report", "nightly-train"]
    assert status()["conditions"]["nightly-fetch"]["runningDuration"] == "10s"
    assert scene.read("jobs", "nightly-train", space)["spec"].get("minAvailable", 0) == 0
    assert [reason for reason, _ in scene.events(space, "nightly")] == ["Created"] * 3
    listed = scene.read("jobtemplates", "fetch", space)["status"]["jobDependsOnList"]
    assert listed == ["nightly-fetch"]


@everywhere
def test_a_cron_job_starts_jobs_and_forgets_old_ones(scene: Scene, space: str) -> None:
    template = {"metadata": {"labels": {"kept": "yes"}}, "spec": {"minAvailable": 1}}
    spec = {
        "schedule": "@every 1s",
        "timeZone": "UTC",
        "jobTemplate": template,
        "successfulJobsHistoryLimit": 0,
    }
    scene.make("cronjobs", {"metadata": {"name": "tick"}, "spec": spec}, space)
    scene.wait(lambda: bool(scene.names("jobs", space)), "the first job")
    (made,) = scene.every("jobs", space)
    assert made["metadata"]["labels"] == {"kept": "yes"}
    assert "volcano.sh/cronjob-scheduled-timestamp" in made["metadata"]["annotations"]
    scene.wait(
        lambda: bool(scene.read("cronjobs", "tick", space).get("status", {}).get("active")), "it to be active"
    )
    scene.patch("cronjobs", "tick", {"spec": {"suspend": True}}, space)
    scene.become(made["metadata"]["name"], space, "Completed")
    scene.wait(lambda: made["metadata"]["uid"] not in _uids(scene.every("jobs", space)), "it to go")
    noted = "lastSuccessfulTime"
    scene.wait(lambda: noted in scene.read("cronjobs", "tick", space)["status"], "its success to be noted")
    said = {reason for reason, _ in scene.events(space, "tick")}
    assert {"SuccessfulCreate", "SawCompletedJob", "SuccessfulDelete"} <= said


@everywhere
def test_quiet_controllers_write_nothing(scene: Scene) -> None:
    crew = next(one for one in scene.crews if one.process.poll() is None)
    previous, calm = crew.writes, 0
    end = time.monotonic() + 30
    while calm < 4 and time.monotonic() < end:
        time.sleep(0.5)
        now = crew.writes
        calm, previous = (calm + 1 if now == previous else 0), now
    assert calm == 4


@everywhere
def test_writes_for_what_is_another_object_by_now_are_no_trouble(scene: Scene, space: str) -> None:
    """API servers say so in words that the pen must understand."""
    made = scene.make("podgroups", {"metadata": {"name": "g"}, "spec": {"minMember": 1}}, space)
    version = made["metadata"]["resourceVersion"]

    async def run() -> None:
        async with Client(find_access(str(scene.plane.kubeconfig))) as client:
            pen = ApiWriter(client)
            earlier = PodGroup(
                metadata=ObjectMeta("g", namespace=space, uid="earlier", resource_version=version)
            )
            patch = {"metadata": {"labels": {"x": "y"}}}
            assert await pen.patch(earlier, patch, exact=False) is None
            assert await pen.delete(earlier) is False
            now = await pen.read(PodGroup, "g", space)
            assert now is not None
            assert now.metadata.labels == {}
            changed = await pen.patch(now, patch)
            assert changed is not None
            with pytest.raises(ApiError):  # that version is history
                await pen.patch(now, {"metadata": {"labels": {"x": "z"}}})
            assert await pen.delete(now) is True
            assert await pen.delete(now) is False

    asyncio.run(run())


def test_the_next_one_takes_over_when_the_leader_dies(scene: Scene, space: str) -> None:
    first = next(one for one in scene.crews if one.process.poll() is None)
    second = scene.start(WITHOUT_JOBS)
    assert (first.leads, second.leads) == (True, False)
    first.process.kill()
    first.process.wait(20)
    scene.make("pods", pod("orphan"), space)
    scene.wait(lambda: second.leads, "the second to lead")
    scene.wait(
        lambda: GROUP in scene.read("pods", "orphan", space)["metadata"].get("annotations", {}),
        "its first work",
    )


def test_a_leader_that_wakes_up_too_late_writes_nothing_and_leaves(scene: Scene, space: str) -> None:
    first = next(one for one in scene.crews if one.process.poll() is None)
    second = scene.start(WITHOUT_JOBS)
    scene.wait(lambda: first.leads, "the first to lead")
    first.process.send_signal(signal.SIGSTOP)
    scene.make("pods", pod("while-asleep"), space)
    scene.wait(lambda: second.leads, "the second to lead")
    group = ("pods", "while-asleep", space)
    scene.wait(lambda: GROUP in scene.read(*group)["metadata"].get("annotations", {}), "its first work")
    version = scene.read(*group)["metadata"]["resourceVersion"]
    first.process.send_signal(signal.SIGCONT)
    assert first.process.wait(30) == 1
    assert "the lease is lost" in first.said
    assert scene.read(*group)["metadata"]["resourceVersion"] == version


@pytest.mark.real_only
def test_owners_may_be_named_where_the_api_server_asks_for_that_right(
    built: None, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """As on OpenShift: an owner that blocks its deletion needs the right to its finalizers."""
    folder = tmp_path_factory.mktemp("owners")
    flags = ("--enable-admission-plugins=OwnerReferencesPermissionEnforcement",)
    with control_plane(folder, api_server_flags=flags) as plane:
        made = Scene(folder, plane)
        try:
            made.install()
            crew = made.start()
            task = {
                "name": "w",
                "replicas": 1,
                "template": {"spec": {"containers": [{"name": "m", "image": "a:1"}]}},
            }
            spec = {"minAvailable": 1, "queue": "default", "tasks": [task]}
            made.make("jobtemplates", {"metadata": {"name": "a"}, "spec": spec}, "default")
            made.make("jobflows", {"metadata": {"name": "f"}, "spec": {"flows": [{"name": "a"}]}}, "default")
            cron = {"schedule": "@every 1s", "jobTemplate": {"spec": spec}}
            made.make("cronjobs", {"metadata": {"name": "c"}, "spec": cron}, "default")
            made.make("pods", pod("bare"), "default")
            made.wait(lambda: len(made.names("jobs", "default")) >= 2, "the jobs of both")
            made.wait(lambda: len(made.names("podgroups", "default")) >= 3, "groups of jobs and of the pod")
            assert "forbidden" not in crew.said.lower(), crew.said
        finally:
            made.close()


def _uids(things: list[Any]) -> set[str]:
    return {one["metadata"]["uid"] for one in things}


def _is_going(thing: Any) -> bool:
    """Gone, or waiting for a garbage collector that this control plane does not have."""
    return not thing or "deletionTimestamp" in thing["metadata"]


def _stamp(now: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(now))
