"""The commands for flows, cron jobs, PodGroups, HyperNodes, pods and events, on both API servers.

No controllers run: the tests write what these would.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner, Result

from stromboli.cli.main import app
from tests.kubernetes.controlplane import ControlPlane
from tests.manifests import hyper_node

Manifest = dict[str, Any]
Run = Callable[..., Result]
FLOWS, BATCH = "/apis/flow.volcano.sh/v1alpha1", "/apis/batch.volcano.sh/v1alpha1"
SCHEDULING, TOPOLOGY = "/apis/scheduling.volcano.sh/v1beta1", "/apis/topology.volcano.sh/v1alpha1"
MERGE = "application/merge-patch+json"
HOSTILE = "\x1b]0;gotcha\x07\x1b[2J" + "x" * 100_000
SPEC = {
    "minAvailable": 2,
    "schedulerName": "volcano",
    "queue": "default",
    "tasks": [
        {
            "name": "worker",
            "replicas": 2,
            "template": {
                "spec": {"containers": [{"name": "main", "image": "busybox"}], "restartPolicy": "Never"}
            },
        }
    ],
}


@pytest.fixture
def run(plane: ControlPlane, namespace: str) -> Run:
    """`run("jobflow", "list")` in the namespace of the test."""

    def invoke(*arguments: object, kubeconfig: Path = plane.kubeconfig, n: str = namespace) -> Result:
        words = [str(argument) for argument in arguments]
        where = ["--kubeconfig", str(kubeconfig), *(["-n", n] if n else [])]
        return CliRunner().invoke(app, [*words, *where], catch_exceptions=False)

    return invoke


@pytest.fixture
def write(plane: ControlPlane, namespace: str) -> Callable[..., Manifest]:
    """`write(FLOWS, "jobflows", manifest)`, and its status after it."""

    def create(root: str, plural: str, manifest: Manifest, inside: str = namespace) -> Manifest:
        place = f"{root}/namespaces/{inside}/{plural}" if inside else f"{root}/{plural}"
        created: Manifest = json.loads(plane.request("POST", place, manifest))
        if "status" in manifest and plural != "podgroups":  # which have no such subresource
            path = f"{place}/{created['metadata']['name']}/status"
            created = json.loads(plane.request("PATCH", path, {"status": manifest["status"]}, MERGE))
        return created

    return create


def flow(name: str = "nightly", **status: Any) -> Manifest:
    steps = [
        {"name": "fetch"},
        {"name": "train", "dependsOn": {"targets": ["fetch"]}},
        {
            "name": "serve",
            "dependsOn": {
                "targets": ["train"],
                "probe": {"tcpSocketList": [{"taskName": "worker", "port": 80}]},
            },
        },
    ]
    return {
        "apiVersion": "flow.volcano.sh/v1alpha1",
        "kind": "JobFlow",
        "metadata": {"name": name},
        "spec": {"flows": steps, "jobRetainPolicy": "retain"},
        **({"status": status} if status else {}),
    }


def template(name: str) -> Manifest:
    return {
        "apiVersion": "flow.volcano.sh/v1alpha1",
        "kind": "JobTemplate",
        "metadata": {"name": name},
        "spec": SPEC,
    }


def cron(name: str = "cleanup", **spec: Any) -> Manifest:
    return {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "CronJob",
        "metadata": {"name": name},
        "spec": {
            "schedule": "30 2 * * *",
            "timeZone": "Europe/Rome",
            "concurrencyPolicy": "Forbid",
            "jobTemplate": {"spec": SPEC},
            **spec,
        },
    }


def pod(name: str, job: str = "train", group: str = "train", index: int = 0, **status: Any) -> Manifest:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "labels": {"volcano.sh/job-name": job, "volcano.sh/queue-name": "default", "team": "a"},
            "annotations": {
                "scheduling.k8s.io/group-name": group,
                "volcano.sh/task-spec": "worker",
                "volcano.sh/task-index": str(index),
            },
        },
        "spec": {"containers": [{"name": "main", "image": "busybox"}], "schedulerName": "volcano"},
        "status": {"phase": "Pending", **status},
    }


def pod_group(name: str, phase: str = "Pending", queue: str = "default", message: str = "") -> Manifest:
    condition = {
        "type": "Unschedulable",
        "status": "True",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
        "reason": "NotEnoughResources",
        "message": message,
        "transitionID": "1",
    }
    return {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "PodGroup",
        "metadata": {"name": name},
        "spec": {"minMember": 2, "queue": queue},
        "status": {"phase": phase, **({"conditions": [condition]} if message else {})},
    }


def event(name: str, kind: str, about: str, message: str, at: str, namespace: str, **more: Any) -> Manifest:
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": name},
        "involvedObject": {
            "kind": kind,
            "name": about,
            "namespace": namespace,
            "apiVersion": "batch.volcano.sh/v1alpha1",
        },
        "type": "Warning",
        "reason": "Told",
        "message": message,
        "firstTimestamp": at,
        "lastTimestamp": at,
        "count": 1,
        "source": {"component": "test"},
        **more,
    }


# -- flows and templates


def test_a_flow_is_created_with_its_templates_shown_as_a_tree_and_deleted(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "flow.yaml"
    file.write_text(yaml.safe_dump_all([flow(), template("fetch"), template("train")]))
    tried = run("jobflow", "create", "-f", file, "--dry-run=server")
    assert tried.stdout.splitlines()[0] == "jobtemplate.flow.volcano.sh/fetch created (server dry run)"
    as_sent = yaml.safe_load(run("jobflow", "create", "-f", file, "--dry-run=client", "-o", "yaml").stdout)
    assert [each["kind"] for each in as_sent["items"]] == ["JobTemplate", "JobTemplate", "JobFlow"]
    assert run("jobflow", "list").stdout == ""
    created = run("jobflow", "create", "-f", file)
    assert (created.exit_code, created.stdout.splitlines()[-1]) == (
        0,
        "jobflow.flow.volcano.sh/nightly created",
    )
    assert run("jobflow", "create", "-f", file).exit_code == 1
    assert run("jobtemplate", "list", "-o", "name").stdout.split() == [
        "jobtemplate.flow.volcano.sh/fetch",
        "jobtemplate.flow.volcano.sh/train",
    ]
    assert "nightly   Pending   0/3" in run("jobflow", "list").stdout
    text = run("jobflow", "describe", "nightly").stdout
    assert "  fetch  Waiting, for its job: is there a JobTemplate fetch?" in text
    assert "  └─ train  Waiting, for fetch (Waiting)" in text
    assert "may start once pods of task worker accept connections on port 80" in text
    both = json.loads(run("jobtemplate", "delete", "fetch", "train", "--dry-run=server", "-o", "json").stdout)
    assert [each["metadata"]["name"] for each in both["items"]] == ["fetch", "train"]
    gone = run("jobflow", "delete", "nightly", "--wait", "--timeout", "60s")
    assert (gone.exit_code, gone.stdout) == (0, "jobflow.flow.volcano.sh/nightly deleted\n")
    again = run("jobflow", "delete", "nightly")
    assert (again.exit_code, "does not exist in namespace" in again.stderr) == (1, True)
    assert run("jobflow", "delete", "nightly", "--ignore-not-found").exit_code == 0


def test_the_tree_of_a_flow_says_how_far_each_step_is(run: Run, write: Callable[..., Manifest]) -> None:
    jobs = [
        {
            "name": "nightly-fetch",
            "state": "Completed",
            "startTimestamp": "2026-01-01T00:00:00Z",
            "endTimestamp": "2026-01-01T00:01:40Z",
        },
        {"name": "nightly-train", "state": "Running", "restartCount": 2},
    ]
    write(
        FLOWS,
        "jobflows",
        flow(state={"phase": "Running"}, completedJobs=["nightly-fetch"], jobStatusList=jobs),
    )
    text = run("jobflow", "describe", "nightly").stdout
    assert "  fetch  Completed, in 100s, job nightly-fetch" in text
    assert "  └─ train  Running, restarted 2 times, job nightly-train" in text
    assert "     └─ serve  Waiting, for train (Running)" in text
    assert "Steps done:    1/3" in text


def test_waiting_for_a_flow_ends_when_it_has_succeeded_and_fails_when_it_failed(
    plane: ControlPlane, namespace: str, run: Run, write: Callable[..., Manifest]
) -> None:
    write(FLOWS, "jobflows", flow(state={"phase": "Running"}))
    assert run("jobflow", "wait", "nightly", "--timeout", "1s").exit_code == 124

    def end() -> None:
        time.sleep(0.5)
        path = f"{FLOWS}/namespaces/{namespace}/jobflows/nightly/status"
        plane.request("PATCH", path, {"status": {"state": {"phase": "Succeed"}}}, MERGE)

    thread = threading.Thread(target=end)
    thread.start()
    waited = run("jobflow", "wait", "jobflow/nightly", "--timeout", "60s")
    thread.join()
    assert (waited.exit_code, waited.stdout) == (0, "jobflow.flow.volcano.sh/nightly has ended\n")
    write(FLOWS, "jobflows", flow("broken", state={"phase": "Failed"}, failedJobs=["broken-fetch"]))
    failed = run("jobflow", "wait", "broken")
    assert (failed.exit_code, failed.stderr) == (
        1,
        "error: jobflow.flow.volcano.sh/broken failed: broken-fetch\n",
    )


def test_a_template_tells_its_tasks(run: Run, write: Callable[..., Manifest]) -> None:
    write(FLOWS, "jobtemplates", template("train"))
    text = run("jobtemplate", "describe", "train").stdout
    assert "worker   2      busybox" in text
    assert (
        yaml.safe_load(run("jobtemplate", "get", "train", "-o", "yaml").stdout)["spec"]["minAvailable"] == 2
    )


# -- cron jobs


def test_a_cron_job_is_held_released_and_started_by_hand(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "cron.json"
    file.write_text(json.dumps(cron()))
    assert run("cronjob", "create", "-f", file).stdout == "cronjob.batch.volcano.sh/cleanup created\n"
    row = run("cronjob", "list").stdout.splitlines()[1].split("   ")
    assert [cell.strip() for cell in row if cell.strip()][:3] == ["cleanup", "30 2 * * *", "no"]
    text = run("cronjob", "describe", "cleanup").stdout
    assert text.count("02:30:00 CE") == 5
    tried = run("cronjob", "suspend", "cleanup", "--dry-run=client")
    assert tried.stdout == "cronjob.batch.volcano.sh/cleanup suspended (dry run)\n"
    assert run("cronjob", "suspend", "cleanup").stdout == "cronjob.batch.volcano.sh/cleanup suspended\n"
    assert "was suspended already" in run("cronjob", "suspend", "cleanup").stdout
    assert "none while it is suspended" in run("cronjob", "describe", "cleanup").stdout
    assert run("cronjob", "resume", "cleanup").stdout == "cronjob.batch.volcano.sh/cleanup resumed\n"
    started = run("cronjob", "trigger", "cleanup", "--name", "now")
    assert started.stdout == "job.batch.volcano.sh/now created\n"
    again = run("cronjob", "trigger", "cleanup", "--name", "now")
    assert (again.exit_code, "already exists" in again.stderr) == (1, True)
    assert "  now    Pending" in run("cronjob", "describe", "cleanup").stdout
    shown = run("cronjob", "trigger", "cleanup", "--dry-run=server", "-o", "json")
    job = json.loads(shown.stdout)
    assert job["metadata"]["ownerReferences"][0]["name"] == "cleanup"
    assert job["spec"]["minAvailable"] == 2


def test_a_job_that_is_started_by_hand_can_be_waited_for(
    plane: ControlPlane, namespace: str, run: Run, write: Callable[..., Manifest]
) -> None:
    write(BATCH, "cronjobs", cron())

    def end() -> None:
        time.sleep(0.5)
        path = f"{BATCH}/namespaces/{namespace}/jobs/{{}}/status"
        for name, phase in (("good", "Completed"), ("bad", "Failed")):
            body = {"status": {"state": {"phase": phase}}}
            for _ in range(100):
                try:
                    plane.request("PATCH", path.format(name), body, MERGE)
                    break
                except Exception:
                    time.sleep(0.1)

    thread = threading.Thread(target=end)
    thread.start()
    good = run("cronjob", "trigger", "cleanup", "--name", "good", "--wait", "--timeout", "60s")
    assert (good.exit_code, good.stdout.splitlines()[-1]) == (0, "job.batch.volcano.sh/good completed")
    bad = run("cronjob", "trigger", "cleanup", "--name", "bad", "--wait", "--timeout", "60s")
    thread.join()
    assert (bad.exit_code, "bad is Failed" in bad.stderr) == (1, True)


# -- PodGroups, pods and events


def test_a_pod_group_says_in_a_sentence_why_it_waits(run: Run, write: Callable[..., Manifest]) -> None:
    said = "Job train waits: 2 cpu too few on every node; ask for less (0/1 nodes)"
    write(SCHEDULING, "podgroups", pod_group("train", "Inqueue", message=said))
    write(SCHEDULING, "podgroups", pod_group("new"))
    write(SCHEDULING, "podgroups", pod_group("there", "Running"))
    for index in range(2):
        write("/api/v1", "pods", pod(f"train-worker-{index}", index=index))
    listed = run("podgroup", "list").stdout
    assert "2 cpu too few on every node" in listed
    assert "queue default has not let it in yet" in listed
    text = run("podgroup", "describe", "train").stdout
    assert "Members:       2: 2 Pending" in text
    assert "Waits:         2 cpu too few on every node" in text
    assert f"In full:       {said}" in text
    assert "  train-worker-1   Pending" in text


@pytest.mark.smoke
def test_pods_of_a_job_a_queue_and_labels(run: Run, write: Callable[..., Manifest]) -> None:
    write(
        BATCH,
        "jobs",
        {
            "apiVersion": "batch.volcano.sh/v1alpha1",
            "kind": "Job",
            "metadata": {"name": "train"},
            "spec": SPEC,
        },
    )
    write(SCHEDULING, "podgroups", pod_group("train", "Inqueue", queue="research"))
    for index in range(2):
        write("/api/v1", "pods", pod(f"train-worker-{index}", index=index))
    write("/api/v1", "pods", pod("other-worker-0", job="other", group="other"))
    alone = pod("alone")
    alone["metadata"] = {"name": "alone"}
    write("/api/v1", "pods", alone)
    lines = run("pods", "train").stdout.splitlines()
    assert lines[0].split() == ["NAME", "READY", "STATUS", "RESTARTS", "NODE", "QUEUE", "JOB", "RANK", "AGE"]
    assert lines[2].split()[:8] == [
        "train-worker-1",
        "0/1",
        "Pending",
        "0",
        "<none>",
        "research",
        "train",
        "1",
    ]
    assert run("pods", "-o", "name").stdout.split() == [
        "pod/other-worker-0",
        "pod/train-worker-0",
        "pod/train-worker-1",
    ]
    assert run("pods", "-q", "research", "-o", "name").stdout.split() == [
        "pod/train-worker-0",
        "pod/train-worker-1",
    ]
    assert run("pods", "-l", "team=b").stderr.startswith("No pods found")
    missing = run("pods", "nothing")
    assert (missing.exit_code, "job.batch.volcano.sh/nothing does not exist" in missing.stderr) == (1, True)


def test_events_of_a_job_its_group_its_pods_and_its_queue_are_one_story(
    namespace: str, run: Run, write: Callable[..., Manifest]
) -> None:
    manifest = {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": "train"},
        "spec": SPEC,
    }
    job = write(BATCH, "jobs", {**manifest, "spec": {**SPEC, "queue": f"q-{namespace}"}})
    group = f"train-{job['metadata']['uid']}"

    def tell(name: str, kind: str, about: str, message: str, minute: int, **more: Any) -> None:
        at = f"2026-01-01T00:{minute:02}:00Z"
        write("/api/v1", "events", event(name, kind, about, message, at, namespace, **more))

    tell("e4", "Pod", "train-worker-0", "placed", 4, type="Normal")
    tell("e1", "Job", "train", "created", 1)
    tell("e3", "PodGroup", group, "too few", 3)
    tell("e3b", "PodGroup", group, "too few", 5)
    tell("e9", "Pod", "train-server-0", "of another job", 9)
    tell("e8", "Job", "other", "of another job", 8)
    queue = event("q1", "Queue", f"q-{namespace}", "opened", "2026-01-01T00:02:00Z", "")
    queue["metadata"]["name"] = f"q1-{namespace}"
    queue["involvedObject"] = {"kind": "Queue", "name": f"q-{namespace}"}
    write("/api/v1", "events", queue, inside="default")
    lines = run("events", "train").stdout.splitlines()
    assert [line.split()[-1] for line in lines[1:]] == ["created", "opened", "placed", "few"]
    assert "(x2 over" in lines[4]
    assert len(run("events", "train", "--types", "Normal").stdout.splitlines()) == 2
    assert run("events", "train", "--since", "1m").stdout == ""
    assert "placed" in run("events", "pod/train-worker-0").stdout
    assert run("events", "pod/train-worker-0").stdout.count("\n") == 2
    assert len(json.loads(run("events", "-o", "json").stdout)["items"]) == 6
    assert run("events", "nothing").exit_code == 1
    assert run("events", "rocket/apollo").exit_code == 2


# -- the network


def test_the_tree_of_hyper_nodes_shows_what_is_free_below_each(
    plane: ControlPlane, namespace: str, run: Run
) -> None:
    prefix = namespace
    nodes = [f"{prefix}-n{number}" for number in range(4)]
    resources = {"cpu": "8", "memory": "32Gi", "pods": "110"}
    for name in nodes:
        plane.request("POST", "/api/v1/nodes", {"metadata": {"name": name}})
        status = {
            "allocatable": resources,
            "capacity": resources,
            "conditions": [{"type": "Ready", "status": "True"}],
        }
        plane.request("PATCH", f"/api/v1/nodes/{name}/status", {"status": status}, MERGE)
    racks = [hyper_node(f"{prefix}-r{rack}", 1, nodes=nodes[2 * rack : 2 * rack + 2]) for rack in range(2)]
    top = hyper_node(f"{prefix}-top", 2, children=[f"{prefix}-r0", f"{prefix}-r1"])
    for manifest in (*racks, top):
        plane.request("POST", f"{TOPOLOGY}/hypernodes", manifest)
    busy = pod("train-worker-0")
    busy["spec"]["nodeName"] = nodes[0]
    busy["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "6"}}
    plane.request("POST", f"/api/v1/namespaces/{namespace}/pods", busy)
    lines = run("hypernode", "tree", f"{prefix}-top", n="").stdout.splitlines()
    assert [line.split()[:2] for line in lines[1:]] == [
        [f"{prefix}-top", "2"],
        ["├─", f"{prefix}-r0"],
        ["└─", f"{prefix}-r1"],
    ]
    content = json.loads(run("hypernode", "tree", f"{prefix}-top", "-o", "json", n="").stdout)["hyperNodes"][
        0
    ]
    assert content["rooms"]["nodes"] == {"total": 4, "free": 3, "largestGang": 2}
    assert content["rooms"]["cpu"] == {"total": 32, "free": 26, "largestGang": 16}
    assert content["hyperNodes"][0]["rooms"]["nodes"]["free"] == 1
    assert f"HyperNode {prefix}-r1" in run("hypernode", "describe", f"{prefix}-top", n="").stdout
    assert run("hypernode", "tree", f"{prefix}-none", n="").exit_code == 1


# -- what holds for all of them


def test_a_user_without_rights_is_told_which_right_is_missing(
    plane: ControlPlane, run: Run, tmp_path: Path, namespace: str
) -> None:
    config = plane.config_for(plane.token)
    config["users"][0]["user"]["as"] = "eve"
    file = tmp_path / "eve"
    file.write_text(json.dumps(config))
    for arguments, resource in (
        (("jobflow", "list"), "jobflows.flow.volcano.sh"),
        (("cronjob", "get", "x"), "cronjobs.batch.volcano.sh"),
        (("podgroup", "list"), "podgroups.scheduling.volcano.sh"),
        (("pods",), "pods"),
        (("events",), "events"),
        (("top", "--once"), "queues.scheduling.volcano.sh"),
    ):
        refused = run(*arguments, kubeconfig=file)
        assert refused.exit_code == 1, arguments
        assert 'user "eve" may not' in refused.stderr, refused.stderr
        assert f" {resource} " in refused.stderr, refused.stderr


def test_a_user_of_one_namespace_sees_what_is_there_and_is_told_what_is_left_out(
    plane: ControlPlane, run: Run, write: Callable[..., Manifest], tmp_path: Path, namespace: str
) -> None:
    rbac = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}"
    groups = ["", "batch.volcano.sh", "scheduling.volcano.sh"]
    rules = [
        {
            "apiGroups": groups,
            "resources": ["pods", "jobs", "cronjobs", "podgroups", "events"],
            "verbs": ["get", "list", "watch"],
        }
    ]
    plane.request("POST", f"{rbac}/roles", {"metadata": {"name": "viewer"}, "rules": rules})
    binding = {
        "metadata": {"name": "viewer"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "viewer"},
        "subjects": [
            {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": f"viewer-{namespace}"}
        ],
    }
    plane.request("POST", f"{rbac}/rolebindings", binding)
    config = plane.config_for(plane.token)
    config["users"][0]["user"]["as"] = f"viewer-{namespace}"
    file = tmp_path / "viewer"
    file.write_text(json.dumps(config))
    write(
        BATCH,
        "jobs",
        {
            "apiVersion": "batch.volcano.sh/v1alpha1",
            "kind": "Job",
            "metadata": {"name": "train"},
            "spec": SPEC,
        },
    )
    write(SCHEDULING, "podgroups", pod_group("train", "Inqueue"))
    write("/api/v1", "pods", pod("train-worker-0"))
    write("/api/v1", "events", event("e1", "Job", "train", "created", "2026-01-01T00:00:00Z", namespace))
    deadline = time.monotonic() + 60  # until the rights are known
    while run("pods", "train", kubeconfig=file).exit_code and time.monotonic() < deadline:
        time.sleep(0.2)
    assert "train-worker-0" in run("pods", "train", kubeconfig=file).stdout
    told = run("events", "train", kubeconfig=file)
    assert (told.exit_code, "created" in told.stdout) == (0, True)
    assert "events of the queue are left out" in told.stderr
    top = run("top", "--once", kubeconfig=file)
    assert (top.exit_code, f"{namespace}/train" in top.stdout) == (0, True)
    assert "may not list nodes in the whole cluster" in top.stderr
    refused = run("cronjob", "suspend", "x", "--dry-run=server", kubeconfig=file)
    assert refused.exit_code == 1


def test_hostile_messages_are_shown_harmlessly(
    namespace: str, run: Run, write: Callable[..., Manifest]
) -> None:
    write(SCHEDULING, "podgroups", pod_group("train", "Inqueue", message=HOSTILE[:30_000]))
    write(
        "/api/v1",
        "events",
        event("e1", "PodGroup", "train", "\x1b[2J\x07", "2026-01-01T00:00:00Z", namespace),
    )
    for arguments in (
        ("podgroup", "list"),
        ("podgroup", "describe", "train"),
        ("podgroup", "get", "train", "-o", "yaml"),
        ("podgroup", "get", "train", "-o", "json"),
        ("events",),
        ("top", "--once"),
    ):
        shown = run(*arguments)
        assert shown.exit_code == 0, shown.stderr
        assert not set(shown.output) & {"\x1b", "\x07"}, arguments
        if "-o" not in arguments:
            assert max(map(len, shown.stdout.splitlines())) < 3000


def test_wrong_usage_is_told_before_anything_is_sent(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "job.yaml"
    file.write_text(yaml.safe_dump(cron()))
    wrong = run("jobflow", "create", "-f", file)
    assert (wrong.exit_code, "CronJob is no flow.volcano.sh/v1alpha1" in wrong.stderr) == (2, True)
    other = {**flow(), "metadata": {"name": "nightly", "namespace": "elsewhere"}}
    file.write_text(yaml.safe_dump(other))
    assert run("jobflow", "create", "-f", file).exit_code == 2
    assert run("jobflow", "create", "-f", tmp_path / "missing.yaml").exit_code == 2
    assert run("jobflow", "delete").exit_code == 2
    assert run("jobflow", "wait", "x", "--timeout", "soon").exit_code == 2


def test_top_shows_queues_jobs_what_waits_and_nodes(
    run: Run, write: Callable[..., Manifest], namespace: str
) -> None:
    write(
        SCHEDULING,
        "podgroups",
        pod_group("train", "Inqueue", message="Job train waits: 2 cpu too few; less (x)"),
    )
    write("/api/v1", "pods", pod("train-worker-0"))
    content = json.loads(run("top", "-o", "json").stdout)
    (job,) = [job for job in content["jobs"] if job["namespace"] == namespace]
    assert (job["name"], job["pods"], job["waitsFor"]) == ("train", 1, "2 cpu too few")
    frame = run("top", "--once", "--view", "waiting").stdout
    assert "2 cpu too few" in frame
    assert run("top", "--once", "--view", "nodes", "--sort", "beauty").exit_code == 2
