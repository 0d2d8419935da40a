"""Queues, PodGroups, TTL, flows and cron jobs on an API server: with the rights of the manifests, once, and quietly."""

from __future__ import annotations

import asyncio
import json
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
from tests.kubernetes.controlling import ControllerCluster
from tests.kubernetes.servers import control_plane

WITHOUT_JOBS = "--controllers=*,-sharding-controller,-job-controller"
GROUP = "scheduling.k8s.io/group-name"


@pytest.fixture(scope="module")
def cluster(built: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControllerCluster]:
    """Controllers but for that of jobs, whose part the tests play."""
    folder = tmp_path_factory.mktemp("controllers")
    with control_plane(folder) as plane:
        made = ControllerCluster(folder, plane)
        try:
            made.install()
            made.start(WITHOUT_JOBS)
            yield made
            (runner,) = (runner for runner in made.runners if runner.process.poll() is None)
            assert runner.stop() == 0, runner.output
            assert "forbidden" not in runner.output.lower(), runner.output
            assert "unexpected" not in runner.output, runner.output
        finally:
            made.close()


@pytest.fixture
def space(cluster: ControllerCluster, request: pytest.FixtureRequest) -> str:
    name: str = request.node.name.removeprefix("test_").replace("_", "-")[:50].rstrip("-")
    cluster.plane.request("POST", "/api/v1/namespaces", {"metadata": {"name": name}})
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


def test_a_queue_is_closed_and_opened_by_commands_with_its_children(
    cluster: ControllerCluster, space: str
) -> None:
    for name, parent in (("team", "root"), ("one", "team"), ("two", "team")):
        cluster.make("queues", {"metadata": {"name": name}, "spec": {"weight": 1, "parent": parent}})
    cluster.wait(lambda: {cluster.state(name) for name in ("team", "one", "two")} == {"Open"}, "open queues")
    group = {
        "metadata": {"name": "g"},
        "spec": {"minMember": 1, "queue": "one"},
        "status": {"phase": "Inqueue"},
    }
    cluster.make("podgroups", group, space)
    (runner,) = (runner for runner in cluster.runners if runner.process.poll() is None)
    counted = 'volcano_queue_pod_group_inqueue_count{queue_name="one"} 1.0'
    cluster.wait(lambda: counted in runner.get("/metrics")[1], "the controller to count the group")
    cluster.command("CloseQueue", "two")
    cluster.wait(lambda: cluster.state("two") == "Closed", "the second to close")
    cluster.command("CloseQueue", "team")
    cluster.wait(
        lambda: (cluster.state("team"), cluster.state("one")) == ("Closed", "Closing"), "the rest to close"
    )
    cluster.delete("podgroups", "g", space)
    cluster.wait(lambda: cluster.state("one") == "Closed", "the last group to leave")
    cluster.command("OpenQueue", "team")
    cluster.wait(lambda: (cluster.state("team"), cluster.state("one")) == ("Open", "Open"), "all to open")
    assert cluster.state("two") == "Closed"
    cluster.wait(lambda: cluster.names("commands", "default") == [], "the commands to be gone")
    assert ("CloseQueue", "Close queue succeed") in cluster.events("default", "team")


@pytest.mark.smoke
def test_bare_pods_and_pods_of_owners_get_their_groups(cluster: ControllerCluster, space: str) -> None:
    cluster.make("pods", pod("alone"), space)
    marks = {"scheduling.volcano.sh/group-min-member": "2", "volcano.sh/preemptable": "true"}
    web = workload("web", 3)
    web["metadata"]["annotations"] = marks
    owner = cluster.make("replicasets", web, space)
    for number in range(3):
        cluster.make("pods", pod(f"web-{number}", owner, app="web"), space)
    state = cluster.make(
        "statefulsets",
        {**workload("db", 1), "spec": {**workload("db", 1)["spec"], "serviceName": "db"}},
        space,
    )
    cluster.make("pods", pod("db-0", state, app="db"), space)

    def groups() -> dict[str, str]:
        return {
            pod["metadata"]["name"]: pod["metadata"].get("annotations", {}).get(GROUP, "")
            for pod in cluster.every("pods", space)
        }

    cluster.wait(lambda: all(groups().values()), "every pod to have a group")
    group_names = groups()
    assert {group_names[f"web-{number}"] for number in range(3)} == {f"podgroup-{owner['metadata']['uid']}"}
    assert group_names["db-0"] == f"podgroup-{state['metadata']['uid']}"
    shared = cluster.read("podgroups", group_names["web-0"], space)
    assert shared["spec"]["minMember"] == 2
    assert shared["spec"]["minResources"]["requests.cpu"] == "2"
    assert shared["spec"]["queue"] == "default"
    assert shared["metadata"]["annotations"]["volcano.sh/preemptable"] == "true"
    assert shared["status"] == {"phase": "Pending"}
    assert len(cluster.names("podgroups", space)) == 3
    cluster.patch("replicasets", "web", {"spec": {"replicas": 0}}, space)
    cluster.wait(lambda: len(cluster.names("podgroups", space)) == 2, "the group of nobody to go")


def test_a_finished_job_is_deleted_when_its_time_is_over(cluster: ControllerCluster, space: str) -> None:
    cluster.make("jobs", job("brief", ttlSecondsAfterFinished=0), space)
    cluster.make("jobs", job("kept", ttlSecondsAfterFinished=10**6), space)
    cluster.make("jobs", job("endless"), space)
    for name in ("brief", "kept", "endless"):
        state = {"phase": "Completed", "lastTransitionTime": _stamp(time.time())}
        cluster.patch("jobs", name, {"status": {"state": state}}, space, "status")
    cluster.wait(lambda: _is_going(cluster.read("jobs", "brief", space)), "the job to be deleted")
    assert {"kept", "endless"} <= set(cluster.names("jobs", space))


def test_three_jobs_follow_one_another(cluster: ControllerCluster, space: str) -> None:
    for name in ("fetch", "train", "report"):
        task = {
            "name": "w",
            "replicas": 1,
            "template": {"spec": {"containers": [{"name": "m", "image": "a:1"}]}},
        }
        cluster.make(
            "jobtemplates", {"metadata": {"name": name}, "spec": {"minAvailable": 1, "tasks": [task]}}, space
        )
    flows = [
        {"name": "fetch"},
        {"name": "train", "dependsOn": {"targets": ["fetch"]}, "patch": {"jobSpec": {"minAvailable": 0}}},
        {"name": "report", "dependsOn": {"targets": ["fetch", "train"]}},
    ]
    cluster.make(
        "jobflows",
        {"metadata": {"name": "nightly"}, "spec": {"flows": flows, "jobRetainPolicy": "retain"}},
        space,
    )
    for number, name in enumerate(("fetch", "train", "report"), start=1):
        cluster.wait(lambda number=number: len(cluster.names("jobs", space)) == number, f"job {number}")  # type: ignore[misc]
        cluster.become(f"nightly-{name}", space, "Running")
        cluster.become(f"nightly-{name}", space, "Completed", runningDuration="10s")

    def status() -> Any:
        return cluster.read("jobflows", "nightly", space).get("status", {})

    cluster.wait(lambda: status().get("state", {}).get("phase") == "Succeed", "the flow to succeed")
    assert status()["completedJobs"] == ["nightly-fetch", "nightly-report", "nightly-train"]
    assert status()["conditions"]["nightly-fetch"]["runningDuration"] == "10s"
    assert cluster.read("jobs", "nightly-train", space)["spec"].get("minAvailable", 0) == 0
    assert [reason for reason, _ in cluster.events(space, "nightly")] == ["Created"] * 3
    listed = cluster.read("jobtemplates", "fetch", space)["status"]["jobDependsOnList"]
    assert listed == ["nightly-fetch"]


def test_a_cron_job_starts_jobs_and_forgets_old_ones(cluster: ControllerCluster, space: str) -> None:
    template = {"metadata": {"labels": {"kept": "yes"}}, "spec": {"minAvailable": 1}}
    spec = {
        "schedule": "@every 1s",
        "timeZone": "UTC",
        "jobTemplate": template,
        "successfulJobsHistoryLimit": 0,
    }
    cluster.make("cronjobs", {"metadata": {"name": "tick"}, "spec": spec}, space)
    cluster.wait(lambda: bool(cluster.names("jobs", space)), "the first job")
    (made,) = cluster.every("jobs", space)
    assert made["metadata"]["labels"] == {"kept": "yes"}
    assert "volcano.sh/cronjob-scheduled-timestamp" in made["metadata"]["annotations"]
    cluster.wait(
        lambda: bool(cluster.read("cronjobs", "tick", space).get("status", {}).get("active")),
        "it to be active",
    )
    cluster.patch("cronjobs", "tick", {"spec": {"suspend": True}}, space)
    cluster.become(made["metadata"]["name"], space, "Completed")
    cluster.wait(lambda: made["metadata"]["uid"] not in _uids(cluster.every("jobs", space)), "it to go")
    noted = "lastSuccessfulTime"
    cluster.wait(
        lambda: noted in cluster.read("cronjobs", "tick", space)["status"], "its success to be noted"
    )
    reasons = {reason for reason, _ in cluster.events(space, "tick")}
    assert {"SuccessfulCreate", "SawCompletedJob", "SuccessfulDelete"} <= reasons


def test_hyper_nodes_are_discovered_from_labels_of_nodes(cluster: ControllerCluster) -> None:
    """With the rights of the manifests: on a ConfigMap of that name and no other."""
    rack, switch, host = "example.com/rack", "example.com/switch", "kubernetes.io/hostname"

    def shown() -> list[tuple[str, int, list[str], int]]:
        return sorted(
            (
                each["metadata"]["labels"].get(rack) or each["metadata"]["labels"][switch],
                each["spec"]["tier"],
                [member["selector"]["exactMatch"]["name"] for member in each["spec"]["members"]],
                each.get("status", {}).get("nodeCount", 0),
            )
            for each in cluster.every("hypernodes")
        )

    def name(place: str) -> str:
        (found,) = (
            each for each in cluster.every("hypernodes") if place in each["metadata"]["labels"].values()
        )
        return str(found["metadata"]["name"])

    for number in range(3):
        labels = {rack: f"r{number // 2}", switch: "s"}
        cluster.make("nodes", {"metadata": {"name": f"racked-{number}", "labels": labels}})
    types = {"racks": [{"nodeLabel": switch}, {"nodeLabel": rack}, {"nodeLabel": host}]}
    source = {"source": "label", "enabled": True, "config": {"networkTopologyTypes": types}}
    data = {"volcano-controller.conf": json.dumps({"networkTopologyDiscovery": [source]})}
    cluster.make(
        "configmaps", {"metadata": {"name": "volcano-controller-configmap"}, "data": data}, "volcano-system"
    )
    cluster.wait(lambda: len(shown()) == 3 and all(count for *_, count in shown()), "HyperNodes")
    assert shown() == [
        ("r0", 1, ["racked-0", "racked-1"], 2),
        ("r1", 1, ["racked-2"], 1),
        ("s", 2, sorted([name("r0"), name("r1")]), 3),
    ]
    cluster.patch("nodes", "racked-1", {"metadata": {"labels": {rack: "r1"}}})
    moved = ("r1", 1, ["racked-1", "racked-2"], 2)
    cluster.wait(lambda: moved in shown() and ("r0", 1, ["racked-0"], 1) in shown(), "the node to have moved")
    for number in range(3):
        cluster.delete("nodes", f"racked-{number}")
    cluster.wait(lambda: shown() == [], "HyperNodes to go with their nodes")


def test_quiet_controllers_write_nothing(cluster: ControllerCluster) -> None:
    runner = next(runner for runner in cluster.runners if runner.process.poll() is None)
    previous, calm = runner.writes, 0
    end = time.monotonic() + 30
    while calm < 4 and time.monotonic() < end:
        time.sleep(0.5)
        now = runner.writes
        calm, previous = (calm + 1 if now == previous else 0), now
    assert calm == 4


def test_writes_for_what_is_another_object_by_now_are_no_trouble(
    cluster: ControllerCluster, space: str
) -> None:
    """API servers say so in words that the writer must understand."""
    made = cluster.make("podgroups", {"metadata": {"name": "g"}, "spec": {"minMember": 1}}, space)
    version = made["metadata"]["resourceVersion"]

    async def run() -> None:
        async with Client(find_access(str(cluster.plane.kubeconfig))) as client:
            writer = ApiWriter(client)
            earlier = PodGroup(
                metadata=ObjectMeta("g", namespace=space, uid="earlier", resource_version=version)
            )
            patch = {"metadata": {"labels": {"x": "y"}}}
            assert await writer.patch(earlier, patch, exact=False) is None
            assert await writer.delete(earlier) is False
            now = await writer.read(PodGroup, "g", space)
            assert now is not None
            assert now.metadata.labels == {}
            changed = await writer.patch(now, patch)
            assert changed is not None
            with pytest.raises(ApiError):  # that version is history
                await writer.patch(now, {"metadata": {"labels": {"x": "z"}}})
            assert await writer.delete(now) is True
            assert await writer.delete(now) is False

    asyncio.run(run())


def test_the_next_one_takes_over_when_the_leader_dies(cluster: ControllerCluster, space: str) -> None:
    first = next(runner for runner in cluster.runners if runner.process.poll() is None)
    second = cluster.start(WITHOUT_JOBS)
    assert (first.leads, second.leads) == (True, False)
    first.process.kill()
    first.process.wait(20)
    cluster.make("pods", pod("orphan"), space)
    cluster.wait(lambda: second.leads, "the second to lead")
    cluster.wait(
        lambda: GROUP in cluster.read("pods", "orphan", space)["metadata"].get("annotations", {}),
        "its first work",
    )


def test_a_leader_that_wakes_up_too_late_writes_nothing_and_leaves(
    cluster: ControllerCluster, space: str
) -> None:
    first = next(runner for runner in cluster.runners if runner.process.poll() is None)
    second = cluster.start(WITHOUT_JOBS)
    cluster.wait(lambda: first.leads, "the first to lead")
    first.process.send_signal(signal.SIGSTOP)
    cluster.make("pods", pod("while-asleep"), space)
    cluster.wait(lambda: second.leads, "the second to lead")
    group = ("pods", "while-asleep", space)
    cluster.wait(lambda: GROUP in cluster.read(*group)["metadata"].get("annotations", {}), "its first work")
    version = cluster.read(*group)["metadata"]["resourceVersion"]
    first.process.send_signal(signal.SIGCONT)
    assert first.process.wait(30) == 1
    assert "the lease is lost" in first.output
    assert cluster.read(*group)["metadata"]["resourceVersion"] == version


@pytest.mark.real_only
def test_owners_may_be_named_where_the_api_server_asks_for_that_right(
    built: None, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """As on OpenShift: an owner that blocks its deletion needs the right to its finalizers."""
    folder = tmp_path_factory.mktemp("owners")
    flags = ("--enable-admission-plugins=OwnerReferencesPermissionEnforcement",)
    with control_plane(folder, api_server_flags=flags) as plane:
        made = ControllerCluster(folder, plane)
        try:
            made.install()
            runner = made.start()
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
            assert "forbidden" not in runner.output.lower(), runner.output
        finally:
            made.close()


def _uids(objects: list[Any]) -> set[str]:
    return {object["metadata"]["uid"] for object in objects}


def _is_going(object: Any) -> bool:
    """Gone, or waiting for a garbage collector that this control plane does not have."""
    return not object or "deletionTimestamp" in object["metadata"]


def _stamp(now: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(now))
