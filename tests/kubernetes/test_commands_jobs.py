"""`stromboli job` on an API server: submitted, listed, described, suspended, resumed, scaled, awaited, deleted."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner, Result

from stromboli.cli.main import app
from tests.kubernetes.commanding import PATIENCE, CommandCluster, cells, job_manifest
from tests.kubernetes.servers import control_plane

HOSTILE = "\x1b]0;owned\x07\x1b[2Jgone\nSTATUS: fine"


@pytest.fixture(scope="module")
def cluster(built: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[CommandCluster]:
    """All controllers, no scheduler and no nodes."""
    folder = tmp_path_factory.mktemp("job_commands")
    with control_plane(folder) as plane:
        made = CommandCluster(folder, plane)
        try:
            made.install()
            made.start("--controllers=*,-sharding-controller")
            yield made
        finally:
            made.close()


@pytest.fixture
def space(cluster: CommandCluster, request: pytest.FixtureRequest) -> str:
    name: str = request.node.name.removeprefix("test_").replace("_", "-")[:50].rstrip("-")
    return cluster.place_of(name)


def submit(cluster: CommandCluster, space: str, *jobs: dict[str, Any]) -> str:
    return cluster.output("job", "run", "-n", space, "-f", "-", stdin=yaml.safe_dump_all(jobs))


def test_jobs_of_files_are_created_each_in_its_namespace(
    cluster: CommandCluster, space: str, tmp_path: Path
) -> None:
    file = tmp_path / "jobs.yaml"
    other = cluster.place_of(f"{space[:40]}-other")
    file.write_text(yaml.safe_dump_all([job_manifest("here"), job_manifest("there", namespace=other)]))
    refused = cluster.run("job", "run", "-n", space, "-f", file)
    assert (refused.exit_code, f"-n says {space}" in refused.stderr) == (2, True), refused.output
    checked = cluster.output("job", "run", "-n", other, "-f", file, "--dry-run", "server")
    assert checked.splitlines() == [
        "job.batch.volcano.sh/here created (server dry run)",
        "job.batch.volcano.sh/there created (server dry run)",
    ]
    assert cluster.names("jobs", other) == []
    made = cluster.output("job", "run", "-n", other, "-f", file)
    assert made == "job.batch.volcano.sh/here created\njob.batch.volcano.sh/there created\n"
    assert cluster.names("jobs", other) == ["here", "there"]
    again = cluster.run("job", "run", "-n", other, "-f", file)
    assert (again.exit_code, again.stderr.count("already exists")) == (1, 2)


def test_a_command_becomes_a_job(cluster: CommandCluster, space: str) -> None:
    words = ("--image", "a:1", "--replicas", 3, "--gang", 2, "-q", "default", "--", "python", "train.py")
    tried = cluster.output("job", "run", "-n", space, "--name", "x", "--dry-run=client", "-o", "json", *words)
    assert json.loads(tried)["metadata"]["namespace"] == space
    assert (
        cluster.output("job", "run", "-n", space, "--name", "mine", *words)
        == "job.batch.volcano.sh/mine created\n"
    )
    spec = cluster.read("jobs", "mine", space)["spec"]
    assert (spec["minAvailable"], [task["replicas"] for task in spec["tasks"]]) == (2, [3])
    late = cluster.run("job", "run", "-n", space, "--name", "later", "--wait", "--timeout", "1s", *words)
    assert late.exit_code == 124, late.output
    for wrong in ((), ("-f", "-", *words), ("--replicas", "many", "--image", "a", "--", "true")):
        assert cluster.run("job", "run", "-n", space, *wrong, stdin="").exit_code == 2


def test_lists_show_phase_queue_and_pods_and_are_filtered(cluster: CommandCluster, space: str) -> None:
    submit(
        cluster,
        space,
        job_manifest("train", labels={"team": "a"}),
        job_manifest("eval", 1, labels={"team": "b"}),
    )
    cluster.start_pods("train", space, 2)
    cluster.wait_phase("train", space, "Running")
    cluster.wait_phase("eval", space, "Pending")
    title, *rows = cells(cluster.output("job", "list", "-n", space))
    assert title == ["NAME", "STATUS", "QUEUE", "PODS", "MIN", "AGE", "DURATION"]
    assert [row[:5] for row in rows] == [
        ["eval", "Pending", "default", "0/1", "1"],
        ["train", "Running", "default", "2/2", "2"],
    ]
    names = "job.batch.volcano.sh/train\n"
    for filters in (("-l", "team=a"), ("--phase", "running"), ("--phase", "Running,Failed", "-q", "default")):
        assert cluster.output("job", "list", "-n", space, "-o", "name", *filters) == names
    everywhere = cells(cluster.output("job", "list", "-A"))
    assert everywhere[0][:2] == ["NAMESPACE", "NAME"]
    assert [space, "train"] in [row[:2] for row in everywhere]
    listed = json.loads(cluster.output("job", "list", "-n", space, "-o", "json"))
    assert [item["metadata"]["name"] for item in listed["items"]] == ["eval", "train"]
    shown = json.loads(cluster.output("job", "get", "train", "-n", space, "-o", "json"))
    assert (shown["kind"], shown["status"]["running"]) == ("Job", 2)
    missing = cluster.run("job", "get", "train", "nobody", "-n", space)
    assert missing.exit_code == 1
    assert missing.stdout.splitlines()[1].startswith("train ")
    assert f"job.batch.volcano.sh/nobody does not exist in namespace {space}" in missing.stderr
    wrong = cluster.run("job", "list", "-n", space, "--phase", "asleep")
    assert (wrong.exit_code, "asleep: no phase of a job" in wrong.stderr) == (2, True)


def test_a_description_says_why_a_job_waits_and_what_is_wrong_with_pods(
    cluster: CommandCluster, space: str
) -> None:
    submit(cluster, space, job_manifest("train", annotations={"note": HOSTILE}))
    cluster.wait_phase("train", space, "Pending")
    group = f"train-{cluster.read('jobs', 'train', space)['metadata']['uid']}"
    sentence = (
        'Job train waits: queue "default" is full; wait, or use another queue (2/2 tasks unschedulable)'
    )
    condition = {
        "type": "Unschedulable",
        "status": "True",
        "reason": "NotEnoughResources",
        "message": sentence,
        "transitionID": "1",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }
    cluster.wait(lambda: cluster.read("podgroups", group, space), "the PodGroup")
    cluster.patch("podgroups", group, {"status": {"phase": "Pending", "conditions": [condition]}}, space)
    text = cluster.output("job", "describe", "train", "-n", space)
    assert 'Waits:         queue "default" is full; wait, or use another queue (2/2' in text
    assert "Gang:          2 of 2 pods start together" in text
    assert "Queue:         default (Open)" in text
    assert ["worker", "2"] in [row[:2] for row in cells(text)]
    assert "\x1b" not in text
    assert "STATUS: fine" not in [line.strip() for line in text.splitlines()]
    wide = cells(cluster.output("job", "list", "-n", space, "-o", "wide"))
    assert wide[1][-1] == 'queue "default" is full'
    silent = cluster.run("job", "logs", "train", "-n", space)
    assert silent.exit_code == 1
    assert 'is Pending and has no pods: queue "default" is full' in silent.stderr
    cluster.start_pods("train", space, 2)
    cluster.wait_phase("train", space, "Running")
    ended = {"name": "main", "image": "a", "imageID": "a", "ready": False, "restartCount": 0}
    why = {"terminated": {"exitCode": 137, "reason": "OOMKilled", "message": HOSTILE}}
    status = {"phase": "Failed", "containerStatuses": [{**ended, "state": why}]}
    cluster.patch("pods", "train-worker-1", {"status": status}, space, "status")
    text = cluster.output("job", "describe", "train", "-n", space)
    rows = [row for row in cells(text) if row[:2] == ["1", "train-worker-1"]]
    assert rows[0][2] == "OOMKilled"
    assert "exit code 137" in rows[0][-1]
    assert "\x1b" not in text


@pytest.mark.smoke
def test_jobs_are_suspended_and_resumed_and_awaited(cluster: CommandCluster, space: str) -> None:
    submit(cluster, space, job_manifest("one"), job_manifest("two"))
    for name in ("one", "two"):
        cluster.start_pods(name, space, 2)
    waiting = ("--wait", "--timeout", PATIENCE, "-n", space)
    assert cluster.output("job", "wait", "one", "two", "--for", "running", *waiting[1:]) != ""
    assert "one suspended (server dry run)" in cluster.output(
        "job", "suspend", "one", "-n", space, "--dry-run=server"
    )
    suspended = cluster.run("job", "suspend", "one", "two", "nobody", *waiting)
    assert (suspended.exit_code, suspended.stdout) == (
        1,
        "job.batch.volcano.sh/one suspended\njob.batch.volcano.sh/two suspended\n",
    )
    assert "nobody does not exist" in suspended.stderr
    assert [row[1] for row in cells(cluster.output("job", "list", "-n", space))[1:]] == ["Aborted"] * 2
    assert "is Aborted already" in cluster.run("job", "suspend", "one", "-n", space).stderr
    with cluster.meanwhile(lambda: start_again(cluster, "one", space)):
        assert cluster.output("job", "resume", "one", *waiting) == "job.batch.volcano.sh/one resumed\n"
    cluster.wait_phase("one", space, "Running")
    running = cluster.run("job", "resume", "one", "-n", space)
    assert (running.exit_code, running.stdout) == (1, ""), running.output
    assert "one is Running: only a suspended job can be resumed" in running.stderr
    late = cluster.run("job", "wait", "two", "--for=running", "--timeout", "1s", "-n", space)
    assert (late.exit_code, "after 1 s it is still not so" in late.stderr) == (124, True), late.output


def start_again(cluster: CommandCluster, job: str, space: str) -> None:
    cluster.wait_phase(job, space, "Pending")
    cluster.start_pods(job, space, 2)


def test_waiting_ends_as_the_job_ends(cluster: CommandCluster, space: str) -> None:
    submit(cluster, space, job_manifest("good", 1), job_manifest("bad", 1))
    for name, phase in (("good", "Succeeded"), ("bad", "Failed")):
        cluster.start_pods(name, space, 1)
        cluster.wait_phase(name, space, "Running")
        cluster.patch("pods", f"{name}-worker-0", {"status": {"phase": phase}}, space, "status")
    good = cluster.run("job", "wait", "good", "-n", space, "--timeout", PATIENCE)
    assert (good.exit_code, good.stdout) == (0, "job.batch.volcano.sh/good is Completed\n"), good.output
    bad = cluster.run("job", "wait", "job/bad", "-n", space, "--timeout", PATIENCE)
    assert (bad.exit_code, "bad is Failed, so it is never completed" in bad.stderr) == (1, True), bad.output
    assert cluster.run("job", "wait", "good", "bad", "--for=finished", "-n", space).exit_code == 0
    started = cluster.run("job", "wait", "good", "--for", "running", "-n", space)
    assert started.exit_code == 0
    ended = cluster.run("job", "suspend", "good", "-n", space)
    assert (ended.exit_code, "has ended cannot be suspended" in ended.stderr) == (1, True)
    assert cluster.run("job", "wait", "nobody", "-n", space).exit_code == 1
    assert cluster.run("job", "wait", "good", "--for", "luck", "-n", space).exit_code == 2


def test_tasks_are_scaled_within_what_may_change(cluster: CommandCluster, space: str) -> None:
    submit(cluster, space, job_manifest("train", 4))
    more = cluster.output("job", "scale", "train", "--replicas", 6, "-n", space)
    assert more == "job.batch.volcano.sh/train scaled: worker replicas 4 -> 6\n"
    fewer = cluster.output("job", "scale", "train", "-t", "worker", "-r", 2, "-n", space)
    assert "worker replicas 6 -> 2" in fewer
    assert "minAvailable 4 -> 2" in fewer
    spec = cluster.read("jobs", "train", space)["spec"]
    assert (spec["tasks"][0]["replicas"], spec["minAvailable"]) == (2, 2)
    tried = cluster.output("job", "scale", "train", "-r", 3, "--min", 1, "--dry-run", "server", "-n", space)
    assert "minAvailable 2 -> 1 (server dry run)" in tried
    assert cluster.read("jobs", "train", space)["spec"] == spec
    unknown = cluster.run("job", "scale", "train", "-t", "ps", "-r", 2, "-n", space)
    assert (unknown.exit_code, "has no task ps; its tasks are worker" in unknown.stderr) == (2, True)
    large = cluster.run("job", "scale", "train", "-r", 2, "--min", 3, "-n", space)
    assert (large.exit_code, "--min 3 is more than all pods of the job, 2" in large.stderr) == (2, True)


def test_jobs_are_deleted_by_name_by_labels_and_all(cluster: CommandCluster, space: str) -> None:
    jobs = [
        job_manifest(name, labels={"team": team})
        for name, team in (("a", "x"), ("b", "x"), ("c", "y"), ("d", "y"))
    ]
    submit(cluster, space, *jobs)
    tried = cluster.output("job", "delete", "a", "-n", space, "--dry-run=client")
    assert tried == "job.batch.volcano.sh/a deleted (dry run)\n"
    assert (
        cluster.output("job", "delete", "job.batch.volcano.sh/a", "-n", space)
        == "job.batch.volcano.sh/a deleted\n"
    )
    assert cluster.names("jobs", space) == ["b", "c", "d"]
    again = cluster.run("job", "delete", "a", "b", "-n", space, "--wait=false")
    assert (again.exit_code, again.stdout) == (1, "job.batch.volcano.sh/b deleted\n")
    assert cluster.run("job", "delete", "a", "-n", space, "--ignore-not-found").exit_code == 0
    cluster.output("job", "delete", "-l", "team=x", "-n", space)
    both = ("job", "delete", "c", "d", "-n", space, "--dry-run=server", "-o")
    assert len(json.loads(cluster.output(*both, "json"))["items"]) == 2
    assert cluster.output(*both, "name") == "job.batch.volcano.sh/c\njob.batch.volcano.sh/d\n"
    cluster.output("job", "delete", "--all", "-n", space)
    assert cluster.names("jobs", space) == []
    assert cluster.run("job", "delete", "-n", space).exit_code == 2
    assert cluster.run("job", "delete", "a", "--all", "-n", space).exit_code == 2


def test_a_viewer_is_told_which_rights_are_missing(cluster: CommandCluster, space: str) -> None:
    submit(cluster, space, job_manifest("train"))
    may_look = {"apiGroups": ["batch.volcano.sh"], "resources": ["jobs"], "verbs": ["get", "list"]}
    viewer = cluster.account(space, "viewer", may_look)

    def run(*arguments: str) -> Result:
        return cluster.run("job", *arguments, "-n", space, kubeconfig=viewer)

    assert "train" in run("list").stdout
    user = f"system:serviceaccount:{space}:viewer"
    elsewhere = cluster.run("job", "list", "-A", kubeconfig=viewer)
    assert elsewhere.exit_code == 1
    assert f'user "{user}" may not list jobs.batch.volcano.sh in the whole cluster' in elsewhere.stderr
    text = run("describe", "train")
    assert text.exit_code == 0, text.output
    assert "Gang:          2 of 2 pods start together" in text.stdout
    for verb, resource in (("list", "pods"), ("get", "podgroups.scheduling.volcano.sh"), ("list", "events")):
        assert f"may not {verb} {resource} in namespace {space}" in text.stderr
    for arguments, right in (
        (("delete", "train"), "delete jobs.batch.volcano.sh"),
        (("suspend", "train"), "create commands.bus.volcano.sh"),
        (("scale", "train", "-r", "3"), "patch jobs.batch.volcano.sh"),
        (("logs", "train"), "list pods"),
    ):
        refused = run(*arguments)
        assert refused.exit_code == 1, refused.output
        assert f"may not {right} in namespace {space}: an administrator gives that right" in refused.stderr
    assert cluster.names("jobs", space) == ["train"]


def test_the_roles_of_volcano_are_enough_to_steer_jobs(cluster: CommandCluster, space: str) -> None:
    """Its editors may neither watch nor patch jobs."""
    verbs = ["create", "get", "list", "update", "delete"]
    editor = cluster.account(
        space,
        "editor",
        {"apiGroups": ["batch.volcano.sh"], "resources": ["jobs"], "verbs": verbs},
        {"apiGroups": ["bus.volcano.sh"], "resources": ["commands"], "verbs": ["create", "get", "list"]},
    )

    def output(*arguments: object, **options: Any) -> str:
        return cluster.output("job", *arguments, "-n", space, kubeconfig=editor, **options)

    assert "created" in output("run", "-f", "-", stdin=yaml.safe_dump(job_manifest("train")))
    assert "replicas 2 -> 3" in output("scale", "train", "-r", 3)
    assert cluster.read("jobs", "train", space)["spec"]["tasks"][0]["replicas"] == 3
    cluster.start_pods("train", space, 3)
    assert "is Running" in output("wait", "train", "--for", "running", "--timeout", PATIENCE)
    assert "suspended" in output("suspend", "train", "--wait", "--timeout", PATIENCE)
    assert "deleted" in output("delete", "train", "--timeout", PATIENCE)


def test_lists_go_on_with_what_changes(cluster: CommandCluster, space: str) -> None:
    submit(cluster, space, job_manifest("first"))
    cluster.wait_phase("first", space, "Pending")
    with cluster.watching("job", "list", "-n", space, "-w") as lines:
        assert next(lines).split()[:2] == ["NAME", "STATUS"]
        assert next(lines).split()[:2] == ["first", "Pending"]
        submit(cluster, space, job_manifest("second"))
        assert any(line.split()[0] == "second" for line in lines)
        cluster.start_pods("first", space, 2)
        assert any(line.split()[:4] == ["first", "Running", "default", "2/2"] for line in lines)


def test_a_list_that_begins_empty_has_a_header_and_the_reasons_of_now(
    cluster: CommandCluster, space: str
) -> None:
    with cluster.watching("job", "list", "-n", space, "-w", "-o", "wide") as lines:
        submit(cluster, space, job_manifest("first"))
        assert next(lines).split()[:2] == ["NAME", "STATUS"]
        assert next(lines).split()[0] == "first"
        cluster.wait_phase("first", space, "Pending")
        name = f"first-{cluster.read('jobs', 'first', space)['metadata']['uid']}"
        cluster.wait(lambda: cluster.read("podgroups", name, space), "the PodGroup")
        condition = {
            "type": "Unschedulable",
            "status": "True",
            "reason": "NotEnough",
            "message": "no GPU is free",
        }
        cluster.patch("podgroups", name, {"status": {"phase": "Pending", "conditions": [condition]}}, space)
        cluster.patch("jobs", "first", {"metadata": {"labels": {"changed": "yes"}}}, space)
        assert any("no GPU is free" in line for line in lines)


def test_names_are_completed_from_the_cluster(cluster: CommandCluster, space: str) -> None:
    submit(cluster, space, job_manifest("train-a"), job_manifest("train-b"), job_manifest("other"))
    env = {
        "_STROMBOLI_COMPLETE": "complete_bash",
        "COMP_WORDS": f"stromboli job get -n {space} train",
        "COMP_CWORD": "5",
    }
    assert completions(cluster, env) == ["train-a", "train-b"]


def completions(cluster: CommandCluster, env: dict[str, str]) -> list[str]:
    around = {"KUBECONFIG": str(cluster.plane.kubeconfig), "HOME": str(cluster.home)}
    done = CliRunner().invoke(app, [], prog_name="stromboli", env={**env, **around})
    return sorted(done.stdout.split())
