"""`stromboli run` and `submit` on an API server with controllers: what is created, held, let go, followed."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from stromboli.api import names
from tests.kubernetes.commanding import CommandCluster
from tests.kubernetes.servers import control_plane

IMAGE = ("--image", "a:1")


@pytest.fixture(scope="module")
def cluster(built: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[CommandCluster]:
    """All controllers, no scheduler and no nodes."""
    folder = tmp_path_factory.mktemp("run_and_submit")
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
    digest = hashlib.sha256(request.node.name.encode()).hexdigest()
    return cluster.place_of(f"run-{digest[:12]}")


def ends(cluster: CommandCluster, space: str, job: str, phase: str, code: int = 0) -> None:
    """The first pod of a job ends; those that are left if one fails are ended by its controller."""
    for pod in cluster.pods(job, space)[:1]:
        ended = {"exitCode": code, "finishedAt": "2026-01-01T00:00:00Z"}
        status = {"name": "main", "image": "a:1", "imageID": "", "ready": False, "restartCount": 0}
        container = {**status, "state": {"terminated": ended}}
        cluster.patch(
            "pods", pod, {"status": {"phase": phase, "containerStatuses": [container]}}, space, "status"
        )


def gates(cluster: CommandCluster, space: str, job: str) -> list[Any]:
    return [
        cluster.read("pods", pod, space)["spec"].get("schedulingGates") for pod in cluster.pods(job, space)
    ]


@pytest.mark.parametrize(
    "options",
    [
        [],
        ["--replicas", "3", "--gang", "2", "--gpus", "1", "--memory", "1Gi", "--time", "1h"],
        ["--array", "1,5,9%2"],
        *(
            ["--plugin", plugin, "--replicas", "2"]
            for plugin in ("pytorch", "mpi", "tensorflow", "ray", "ssh")
        ),
    ],
)
def test_an_api_server_takes_every_job_without_a_field_that_it_does_not_know(
    cluster: CommandCluster, space: str, options: list[str]
) -> None:
    shown = cluster.output(
        "run", "-n", space, *IMAGE, "--dry-run=client", "-o", "json", *options, "--", "true"
    )
    validated = cluster.plane.kubectl(
        *("apply", "--server-side", "--validate=strict", "--dry-run=server", "-f", "-"), stdin=shown
    )
    assert "serverside-applied" in validated
    cluster.output("run", "-n", space, *IMAGE, "--dry-run=server", *options, "--", "true")
    assert cluster.names("jobs", space) == []


@pytest.mark.smoke
def test_a_job_is_followed_to_its_end_and_ends_the_command_with_its_code(
    cluster: CommandCluster, space: str
) -> None:
    def act() -> None:
        cluster.wait(lambda: "bad" in cluster.names("jobs", space), "the job")
        cluster.start_pods("bad", space, 2)
        ends(cluster, space, "bad", "Failed", 7)

    with cluster.meanwhile(act):
        result = cluster.run("run", "-n", space, *IMAGE, "--name", "bad", "--replicas", "2", "--", "false")
    assert result.exit_code == 7, result.output
    assert "job.batch.volcano.sh/bad is Terminated" in result.stderr
    assert "exit code 7" in result.stderr


def test_a_job_that_completes_ends_the_command_well(cluster: CommandCluster, space: str) -> None:
    def act() -> None:
        cluster.wait(lambda: "good" in cluster.names("jobs", space), "the job")
        cluster.start_pods("good", space, 1)
        ends(cluster, space, "good", "Succeeded")

    with cluster.meanwhile(act):
        assert cluster.run("run", "-n", space, *IMAGE, "--name", "good", "--", "true").exit_code == 0


def test_a_job_that_somebody_deletes_ends_the_command(cluster: CommandCluster, space: str) -> None:
    def act() -> None:
        cluster.wait(lambda: "gone" in cluster.names("jobs", space), "the job")
        cluster.delete("jobs", "gone", space)

    with cluster.meanwhile(act):
        result = cluster.run("run", "-n", space, *IMAGE, "--name", "gone", "--", "true")
    assert result.exit_code == 1
    assert "job.batch.volcano.sh/gone is gone: it was deleted" in result.stderr


def test_pods_wait_at_a_gate_for_another_job(cluster: CommandCluster, space: str) -> None:
    for name, options in (("first", []), ("second", ["--after", "first"])):
        cluster.output("run", "-n", space, *IMAGE, "--name", name, "-d", *options, "--", "true")
    for name in ("first", "second"):
        uid = cluster.read("jobs", name, space)["metadata"]["uid"]
        cluster.wait(
            lambda uid=uid, name=name: cluster.read("podgroups", f"{name}-{uid}", space), "the group"
        )
        cluster.patch("podgroups", f"{name}-{uid}", {"status": {"phase": "Inqueue"}}, space)
    cluster.wait(lambda: gates(cluster, space, "second") == [[{"name": names.AFTER}]], "a pod at the gate")
    assert gates(cluster, space, "first") == [None]
    cluster.start_pods("first", space, 1)
    ends(cluster, space, "first", "Succeeded")
    cluster.wait(lambda: gates(cluster, space, "second") == [None], "a pod that may start")
    cluster.wait(lambda: "AfterMet" in [reason for reason, _ in cluster.events(space, "second")], "an event")


def test_a_failure_fails_the_jobs_that_wait_for_a_completion(cluster: CommandCluster, space: str) -> None:
    cluster.output("run", "-n", space, *IMAGE, "--name", "first", "-d", "--", "true")
    cluster.output("run", "-n", space, *IMAGE, "--name", "second", "-d", "--after", "first", "--", "true")
    cluster.output("run", "-n", space, *IMAGE, "--name", "third", "-d", "--after", "second", "--", "true")
    cluster.start_pods("first", space, 1)
    ends(cluster, space, "first", "Failed", 1)
    cluster.wait_phase("first", space, "Terminated")
    cluster.wait_phase("second", space, "Failed")
    cluster.wait_phase("third", space, "Failed")
    messages = [message for reason, message in cluster.events(space, "second") if reason == "AfterFailed"]
    assert any("job first, and that is Terminated" in message for message in messages)


def test_admission_of_the_cluster_does_not_have_to_know_the_jobs(cluster: CommandCluster, space: str) -> None:
    result = cluster.run("run", "-n", space, *IMAGE, "--after", "nobody", "--", "true")
    assert (result.exit_code, cluster.names("jobs", space)) == (1, [])
    assert "job.batch.volcano.sh/nobody does not exist" in result.stderr


def test_a_priority_class_that_does_not_exist_is_told_before_the_job_is_made(
    cluster: CommandCluster, space: str
) -> None:
    result = cluster.run("run", "-n", space, *IMAGE, "--priority", "nobody", "-d", "--", "true")
    assert (result.exit_code, cluster.names("jobs", space)) == (1, [])
    assert "--priority nobody: priorityclass.scheduling.k8s.io/nobody does not exist; there " in result.stderr


def test_a_namespace_that_does_not_exist_is_told_with_the_way_out(cluster: CommandCluster) -> None:
    result = cluster.run("run", "-n", "nowhere", *IMAGE, "-d", "--", "true")
    assert result.exit_code == 1
    assert 'namespaces "nowhere" not found: choose another with -n, or create it' in result.stderr


@pytest.mark.parametrize(("command", "told"), [(["echo a && echo b"], True), (["echo", "a b"], False)])
def test_a_line_for_a_shell_is_told_how_to_be_given(
    cluster: CommandCluster, space: str, command: list[str], told: bool
) -> None:
    result = cluster.run("run", "-n", space, *IMAGE, "-d", "--", *command)
    assert result.exit_code == 0
    assert ("note: that is a single word with spaces" in result.stderr) is told


def test_options_after_a_script_are_for_the_script_and_that_is_told(
    cluster: CommandCluster, space: str, tmp_path: Path
) -> None:
    script = tmp_path / "plain.sh"
    script.write_text("#!/bin/sh\necho $@\n")
    result = cluster.run(
        "submit", "-n", space, *IMAGE, "--name", "plain", str(script), "--dry-run=client", "--lr"
    )
    assert (result.exit_code, cluster.names("jobs", space)) == (0, ["plain"])
    assert "note: --dry-run stands after the script" in result.stderr
    assert "--lr" not in result.stderr


def test_a_name_that_is_taken_is_told_with_the_way_out(cluster: CommandCluster, space: str) -> None:
    cluster.output("run", "-n", space, *IMAGE, "--name", "same", "-d", "--", "true")
    result = cluster.run("run", "-n", space, *IMAGE, "--name", "same", "-d", "--", "true")
    assert result.exit_code == 1
    assert "same exists already" in result.stderr
    assert "--name" in result.stderr


def test_a_script_is_submitted_with_its_options(cluster: CommandCluster, space: str, tmp_path: Path) -> None:
    script = tmp_path / "night.sh"
    script.write_text(
        "#!/bin/sh\n#SBATCH -N 2 -t 30 --mail-type=END\n#STROMBOLI --image b:2\nsrun hostname\n"
    )
    result = cluster.run("submit", "-n", space, "--cpus", "2", script, "one")
    assert result.exit_code == 0, result.output
    name = result.stdout.removeprefix("Submitted job ").strip()
    assert "--mail-type is not honoured" in result.stderr
    job = cluster.read("jobs", name, space)
    container = job["spec"]["tasks"][0]["template"]["spec"]["containers"][0]
    assert (job["spec"]["minAvailable"], container["image"]) == (2, "b:2")
    assert (container["resources"]["requests"]["cpu"], container["command"][-1]) == ("2", "one")
    assert job["metadata"]["annotations"][names.TIME_LIMIT] == "30m"


def variables(manifest: dict[str, Any]) -> dict[str, str]:
    return {
        each["name"]: each["value"] for each in manifest["spec"]["containers"][0]["env"] if "value" in each
    }


def test_rank_0_of_a_gang_has_the_host_name_that_all_its_pods_are_given(
    cluster: CommandCluster, space: str
) -> None:
    cluster.output("run", "-n", space, *IMAGE, "--name", "gang", "--replicas", "2", "-d", "--", "true")
    cluster.start_pods("gang", space, 2)
    pods = [cluster.read("pods", name, space) for name in sorted(cluster.pods("gang", space))]
    first = f"{pods[0]['spec']['hostname']}.{pods[0]['spec']['subdomain']}"
    assert [variables(pod)["MASTER_ADDR"] for pod in pods] == [first, first]
    service = cluster.read("services", pods[0]["spec"]["subdomain"], space)
    assert service["spec"]["clusterIP"] == "None"
    assert service["spec"]["selector"].items() <= pods[0]["metadata"]["labels"].items()


@pytest.mark.parametrize(
    ("options", "seed", "token"),
    [([], None, None), (["--export=ALL"], "7", None), (["--export=ALL,MY_TOKEN"], "7", "secret")],
)
def test_a_script_gets_variables_on_request_and_credentials_by_name(
    cluster: CommandCluster,
    space: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    options: list[str],
    seed: str | None,
    token: str | None,
) -> None:
    monkeypatch.setenv("MY_SEED", "7")
    monkeypatch.setenv("MY_TOKEN", "secret")
    script = tmp_path / "train.sh"
    script.write_text("#!/bin/sh\n#SBATCH -N 1\nsrun hostname\n")
    result = cluster.run("submit", "-n", space, *IMAGE, "--name", "train", *options, script)
    job = cluster.read("jobs", "train", space)
    known = variables(job["spec"]["tasks"][0]["template"])
    assert (known.get("MY_SEED"), known.get("MY_TOKEN")) == (seed, token)
    assert "PATH" not in known
    assert ("your environment is not passed to this cluster" in result.stderr) == (not options)
    assert ("MY_TOKEN" in result.stderr) == (seed is not None and token is None)


def test_who_may_not_create_jobs_hears_which_right_is_missing(cluster: CommandCluster, space: str) -> None:
    rule = {"apiGroups": ["batch.volcano.sh"], "resources": ["jobs"], "verbs": ["get", "list"]}
    viewer = cluster.account(space, "viewer", rule)
    result = cluster.run("run", "-n", space, *IMAGE, "--", "true", kubeconfig=viewer)
    assert result.exit_code == 1
    assert "may not create jobs.batch.volcano.sh" in result.stderr


def test_the_roles_of_volcano_are_enough_to_follow_a_job(cluster: CommandCluster, space: str) -> None:
    """Its editors may list jobs and not watch them."""
    verbs = ["create", "get", "list"]
    editor = cluster.account(
        space,
        "editor",
        {"apiGroups": ["batch.volcano.sh"], "resources": ["jobs"], "verbs": verbs},
        {"apiGroups": [""], "resources": ["pods", "pods/log"], "verbs": ["get", "list"]},
    )

    def act() -> None:
        cluster.wait(lambda: "bad" in cluster.names("jobs", space), "the job")
        cluster.start_pods("bad", space, 1)
        ends(cluster, space, "bad", "Failed", 7)

    with cluster.meanwhile(act):
        result = cluster.run("run", "-n", space, *IMAGE, "--name", "bad", "--", "false", kubeconfig=editor)
    assert result.exit_code == 7, result.output


def test_who_may_not_see_pods_hears_that_the_job_goes_on(cluster: CommandCluster, space: str) -> None:
    rule = {"apiGroups": ["batch.volcano.sh"], "resources": ["jobs"], "verbs": ["create", "get", "list"]}
    submitter = cluster.account(space, "submitter", rule)
    result = cluster.run("run", "-n", space, *IMAGE, "--name", "on", "--", "true", kubeconfig=submitter)
    assert result.exit_code == 1
    assert "job.batch.volcano.sh/on goes on" in result.stderr
    assert "may not list pods" in result.stderr
