"""Volcano's command line on a running API server: words, columns, texts and exit statuses (spec 07 13-17)."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from stromboli.cli.cluster.cluster_kinds import COMMANDS, JOBS, POD_GROUPS, PODS, QUEUES
from stromboli.cli.vcctl import entry_points
from stromboli.kube.api_client import Client
from stromboli.kube.api_resources import Resource
from stromboli.kube.cluster_access import find_access
from stromboli.kube.request import Request
from tests.embedded.background_server import background_server

Manifest = dict[str, Any]
FAILED, WRONG_USAGE = 255, 1


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The kubeconfig of an API server with Volcano's kinds and no controllers."""
    folder = tmp_path_factory.mktemp("server")
    with background_server(folder, crds=True):
        yield folder / "kubeconfig"


class Call:
    """Calls a program with a command line: exit status, standard output and standard error."""

    def __init__(
        self, server: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        self.server = server
        self._patch = monkeypatch
        self._capture = capsys

    def __call__(self, line: str, *words: str) -> tuple[int, str, str]:
        program, *arguments = line.split()
        self._patch.setattr(sys, "argv", [program, *arguments, *words])
        with pytest.raises(SystemExit) as end:
            getattr(entry_points, program)()
        captured = self._capture.readouterr()
        return int(end.value.code or 0), captured.out, captured.err

    def objects(self, resource: Resource, namespace: str = "") -> list[Manifest]:
        async def read() -> bytes:
            async with Client(find_access(str(self.server))) as client:
                return await client.list(resource, namespace)

        items: list[Manifest] = msgspec.json.decode(asyncio.run(read()))["items"]
        return items

    def create(self, resource: Resource, manifest: Manifest, namespace: str = "") -> None:
        async def write() -> None:
            async with Client(find_access(str(self.server))) as client:
                await client.create(resource, manifest, namespace)

        asyncio.run(write())


@pytest.fixture
def call(
    server: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> Call:
    monkeypatch.setenv("KUBECONFIG", str(server))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    return Call(server, monkeypatch, capsys)


def job_named(call: Call, name: str) -> Manifest:
    return next(job for job in call.objects(JOBS) if job["metadata"]["name"] == name)


# -- jobs


def test_run_makes_a_job_of_one_task_with_volcanos_defaults(call: Call) -> None:
    assert call("vcctl job run -N first -r 3 -m 2") == (0, "run job first successfully\n", "")
    spec = job_named(call, "first")["spec"]
    (task,) = spec["tasks"]
    (container,) = task["template"]["spec"]["containers"]
    assert (spec["minAvailable"], spec["schedulerName"], task["replicas"]) == (2, "volcano", 3)
    assert (container["name"], container["image"]) == ("first", "busybox")
    assert container["resources"]["requests"] == {"cpu": "1000m", "memory": "100Mi"}
    assert task["template"]["metadata"]["labels"] == {"job.volcano.sh": "first"}


def test_run_takes_a_file_and_honours_its_namespace(call: Call, tmp_path: Path) -> None:
    file = tmp_path / "job.yaml"
    file.write_text(
        "apiVersion: batch.volcano.sh/v1alpha1\nkind: Job\nmetadata: {name: filed, namespace: kube-public}\n"
        "spec:\n  minAvailable: 1\n  tasks:\n  - replicas: 1\n    name: t\n    template:\n      spec:\n"
        "        restartPolicy: Never\n        containers: [{name: c, image: i}]\n"
    )
    assert call("vcctl job run -f", str(file)) == (0, "run job filed successfully\n", "")
    assert job_named(call, "filed")["metadata"]["namespace"] == "kube-public"
    assert call("vcctl job run -f job.txt")[:2] == (FAILED, "Failed to run job: only support yaml file\n")


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ("vcctl job run", "Failed to run job: job name cannot be left blank"),
        (
            "vcctl job run -f none.yaml",
            "Failed to run job: failed to read file, err: open none.yaml: No such file or directory",
        ),
        (
            "vcctl job run -N x -R cpu",
            "Failed to run job: invalid argument syntax cpu, expected <resource>=<value>",
        ),
        (
            "vcctl job view",
            "Failed to view job: job name (specified by --name or -N) is mandatory to view a particular job",
        ),
        ("vcctl job suspend", "Failed to suspend job: job name is mandatory to suspend a particular job"),
        ("vcctl job delete", "Failed to delete job: job name is mandatory to delete a particular job"),
        ("vcctl job view -N none", 'Failed to view job: jobs.batch.volcano.sh "none" not found'),
        ("vcctl job resume -N none", 'Failed to resume job: jobs.batch.volcano.sh "none" not found'),
        ("vcancel", "Failed to: job name is mandatory to cancel a particular job"),
        ("vcctl queue delete", "Failed to delete queue: queue name must be specified"),
        ("vcctl queue get", "Failed to get queue: name is mandatory to get the particular queue details"),
        ("vcctl queue operate -n q", "Failed to operate queue: action can not be null"),
        (
            "vcctl queue operate -n q -a x",
            "Failed to operate queue: action x invalid, valid actions are open, close and update",
        ),
        (
            "vcctl queue operate -n q -a update",
            "Failed to operate queue: when update queue q, weight must be specified,"
            " the value must be greater than 0",
        ),
        (
            "vcctl jobflow get",
            "Failed to get jobflow: name is mandatory to get the particular jobflow details",
        ),
        ("vcctl jobtemplate delete", "Failed to delete jobtemplate: job template name must be specified"),
        ("vcctl jobflow create", "Failed to create jobflow: open : no such file or directory"),
        ("vcctl jobflow describe -o x", "Failed to describe jobflow: Unsupported format: x"),
    ],
)
def test_what_is_missing_is_told_in_volcanos_words(call: Call, line: str, text: str) -> None:
    assert call(line) == (FAILED, f"{text}\n", "")


def test_lists_have_volcanos_columns(call: Call) -> None:
    call("vsub -n listed -N default -r 2")
    status, out, _ = call("vcctl job list")
    header, *rows = out.splitlines()
    assert status == 0
    titles = " ".join(header.split())
    assert titles == (
        "Name Creation Phase JobType Replicas Min Pending Running Succeeded Failed Unknown RetryCount"
    )
    row = next(row for row in rows if row.startswith("listed"))
    assert row[row.index("Batch") :].split()[:2] == ["Batch", "2"]
    assert header.index("JobType") == row.index("Batch")
    everywhere = call("vjobs --all-namespaces")[1]
    assert everywhere.split()[:2] == ["Namespace", "Name"]
    assert "listed" not in call("vcctl job list --selector first")[1]
    assert call("vcctl job list -n empty") == (0, "No resources found\n", "")


def test_vsub_splits_its_command_and_takes_its_defaults_from_the_environment(
    call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    call("vsub -n split -c", "sh -c 'sleep 60; echo done'")
    container = job_named(call, "split")["spec"]["tasks"][0]["template"]["spec"]["containers"][0]
    assert container["command"] == ["sh", "-c", "sleep 60; echo done"]
    assert "Failed to: invalid command" in call("vsub -n bad -c", "sh 'a")[1]


def test_a_view_shows_the_job_in_volcanos_layout(call: Call) -> None:
    call("vcctl job run -N viewed")
    lines = call("vcctl job view -N viewed")[1].splitlines()
    assert lines[0] == "Name:       \tviewed"
    assert "  Min Available:     \t1" in lines
    assert "    Env:\t[]" in lines
    assert "              Cpu:\t1000m" in lines
    assert lines[-1] == "Events: \t<none>"


def test_suspend_and_resume_send_commands_without_a_word(call: Call) -> None:
    call("vcctl job run -N paused")
    assert call("vcctl job suspend -N paused") == (0, "", "")
    assert call("vresume -n paused") == (0, "", "")
    commands = [each for each in call.objects(COMMANDS) if each["target"]["name"] == "paused"]
    assert sorted(each["action"] for each in commands) == ["AbortJob", "ResumeJob"]
    assert all(each["metadata"]["name"].startswith("paused-") for each in commands)


def test_delete_and_cancel_say_so(call: Call) -> None:
    call("vcctl job run -N gone")
    assert call("vcctl job delete -N gone")[:2] == (0, "delete job gone successfully\n")
    call("vcctl job run -N gone-too")
    assert call("vcancel -n gone-too")[:2] == (0, "cancel job gone-too successfully\n")


# -- queues, flows, pods


def test_queues_are_created_updated_closed_and_counted(call: Call) -> None:
    assert call("vcctl queue create -n research -w 2") == (0, "", "")
    assert call("vcctl queue operate -n research -a update -w 5") == (0, "", "")
    assert call("vcctl queue operate -n research -a close") == (0, "", "")
    (command,) = [each for each in call.objects(COMMANDS) if each["target"]["name"] == "research"]
    assert (command["action"], command["metadata"]["namespace"]) == ("CloseQueue", "default")
    group = {
        "apiVersion": POD_GROUPS.api_version,
        "kind": "PodGroup",
        "metadata": {"name": "g"},
        "spec": {"minMember": 1, "queue": "research"},
    }
    call.create(POD_GROUPS, group, "default")
    header, *rows = call("vcctl queue list")[1].splitlines()
    assert (
        header == "Name                     Weight  State   Parent  Inqueue Pending Running Unknown Completed"
    )
    row = next(row for row in rows if row.startswith("research")).split()
    assert row[1] == "5"
    assert call("vqueues -n research")[1].splitlines()[0] == (
        "Name                     Weight  State   Inqueue Pending Running Unknown"
    )
    assert any(queue["metadata"]["name"] == "research" for queue in call.objects(QUEUES))


def test_flows_and_templates_come_from_files_and_a_failure_shows_in_the_exit_status(
    call: Call, tmp_path: Path
) -> None:
    file = tmp_path / "flow.yaml"
    file.write_text(
        "apiVersion: flow.volcano.sh/v1alpha1\nkind: JobFlow\nmetadata: {name: a, namespace: default}\n"
        "spec: {flows: [{name: t}], jobRetainPolicy: delete}\n"
    )
    assert call("vcctl jobflow create -f", str(file)) == (0, "Created JobFlow: default/a\n", "")
    again = call("vcctl jobflow create -f", str(file))
    assert again[0] != 0
    assert again[1].startswith("Failed to create JobFlow: ")
    assert call("vcctl jobflow list")[1].split()[:4] == ["Name", "Namespace", "Phase", "Age"]
    assert "kind: JobFlow" in call("vcctl jobflow describe -N a")[1]
    assert call("vcctl jobflow delete -N a")[:2] == (0, "Deleted JobFlow: default/a\n")
    assert call("vcctl jobtemplate create -f", str(file))[1] == (
        f"Failed to create jobtemplate: {file}: a JobFlow, and a JobTemplate is needed\n"
    )


def test_pods_of_a_job_are_listed(call: Call) -> None:
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "j-0", "labels": {"volcano.sh/job-name": "j", "volcano.sh/queue-name": "q"}},
        "spec": {"containers": [{"name": "c", "image": "i"}]},
    }
    call.create(PODS, pod, "default")
    header, row = call("vcctl pod list -j j")[1].splitlines()
    assert header.split() == ["Name", "Ready", "Status", "Restart", "Age"]
    assert row.split()[:4] == ["j-0", "0/1", "Pending", "0"]
    assert "j-0" in call("vcctl pod list -q q")[1]
    assert call("vcctl pod list -j j -q other")[:2] == (
        FAILED,
        "Failed to list pod: the input vcjob j does not match the queue other\n",
    )


# -- usage


def test_wrong_usage_ends_as_in_volcano(call: Call) -> None:
    status, out, err = call("vcctl job list --nope")
    assert (status, out) == (WRONG_USAGE, "")
    assert err.startswith("Usage:\n  vcctl job list [flags]")
    assert err.endswith("Error: unknown flag: --nope\n")
    assert "unknown shorthand flag: 'z' in -z" in call("vcctl job list -z")[2]
    assert "flag needs an argument: 'N' in -N" in call("vcctl job view -N")[2]
    assert call("vcctl nothing")[0] == WRONG_USAGE
    for line in ("vcctl job", "vcctl job nothing", "vcctl", "vcctl job run -h"):
        status, out, _ = call(line)
        assert (status, out.startswith("Usage:")) == (0, True)


def test_underscores_are_dashes_and_values_may_follow_at_once(call: Call) -> None:
    assert call("vcctl job list --all_namespaces=false -nempty")[1] == "No resources found\n"


def test_hostile_words_are_shown_harmlessly(call: Call) -> None:
    for line, words in (
        ("vcctl job view -N", ["\x1b[2J"]),
        ("vcctl", ["\x1b]0;x\x07"]),
        ("vsub -n", ["a/../b"]),
    ):
        status, out, err = call(line, *words)
        assert status != 0
        assert "\x1b" not in out + err


# -- how calls begin and end


def test_common_flags_may_stand_before_the_group(call: Call, server: Path) -> None:
    status, out, _ = call(f"vcctl -v 4 --log_flush_frequency=1s -k {server} queue list")
    assert (status, out.split()[:2]) == (0, ["Name", "Weight"])
    status, out, err = call("vcctl --frob job list")
    assert (status, out, err) == (WRONG_USAGE, "", "Error: unknown flag: --frob\n")


def test_a_file_that_is_no_yaml_is_told_in_volcanos_words(call: Call, tmp_path: Path) -> None:
    for text in ("a: [", "", "kind: Job\n"):
        file = tmp_path / "bad.yaml"
        file.write_text(text)
        status, out, _ = call("vcctl job run -f", str(file))
        assert status == FAILED
        assert out.startswith("Failed to run job: failed to unmarshal file, err:  ")


def test_a_reader_that_goes_away_ends_a_command_without_a_traceback(server: Path, tmp_path: Path) -> None:
    script = "from stromboli.cli.vcctl.entry_points import vcctl; vcctl()"
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(
        [sys.executable, "-c", script, "queue", "list"],
        env={**os.environ, "KUBECONFIG": str(server), "HOME": str(tmp_path)},
        stdout=writing,
        stderr=subprocess.PIPE,
        timeout=120,
        check=False,
    )
    os.close(writing)
    assert (done.returncode, done.stderr) == (1, b"")


# -- users who may read little


def test_who_may_not_list_pod_groups_still_sees_queues_by_vqueues(call: Call, tmp_path: Path) -> None:
    reader = account(call, tmp_path, "queues", "jobs")
    call("vcctl queue create -n seen")
    status, out, _ = call(f"vqueues -n seen -k {reader}")
    assert (status, out.splitlines()[1].split()) == (0, ["seen", "1", "0", "0", "0", "0"]), out
    status, out, _ = call(f"vcctl queue list -k {reader}")
    assert status == FAILED
    assert out.startswith("Failed to list queue: failed to list podgroups with err: user ")
    status, out, _ = call(f"vcctl queue get -n seen -k {reader}")
    assert out.startswith("Failed to get queue: failed to list podgroup for queue seen with err: user ")


def test_who_may_not_list_events_sees_the_job_and_is_told_on_standard_error(
    call: Call, tmp_path: Path
) -> None:
    reader = account(call, tmp_path, "jobs")
    call("vcctl job run -N watched")
    status, out, err = call(f"vcctl job view -N watched -k {reader}")
    assert (status, out.splitlines()[0]) == (0, "Name:       \twatched")
    assert "Events" not in out
    assert err.startswith("Failed to list events: user ")


def account(call: Call, folder: Path, *resources: str) -> Path:
    """The kubeconfig of somebody who may get and list these of Volcano's kinds, and nothing else."""
    name = f"reader-of-{'-'.join(resources)}"
    rbac = "rbac.authorization.k8s.io"
    rules = [{"apiGroups": ["*"], "resources": list(resources), "verbs": ["get", "list"]}]
    subject = {"kind": "ServiceAccount", "name": name, "namespace": "default"}
    reference = {"apiGroup": rbac, "kind": "ClusterRole", "name": name}
    role = Resource(rbac, "v1", "clusterroles", "ClusterRole", namespaced=False)
    binding = Resource(rbac, "v1", "clusterrolebindings", "ClusterRoleBinding", namespaced=False)
    accounts = Resource("", "v1", "serviceaccounts", "ServiceAccount")
    call.create(accounts, {"metadata": {"name": name}}, "default")
    call.create(role, {"metadata": {"name": name}, "rules": rules})
    call.create(binding, {"metadata": {"name": name}, "roleRef": reference, "subjects": [subject]})
    return signed_in(call, folder, name)


def signed_in(call: Call, folder: Path, name: str) -> Path:
    """The kubeconfig of the server with the token of an account in the place of the administrator's certificate."""
    path = f"/api/v1/namespaces/default/serviceaccounts/{name}/token"

    async def token() -> str:
        async with Client(find_access(str(call.server))) as client:
            body = await client.send(Request("POST", path, b'{"spec": {}}'))
        return str(msgspec.json.decode(body)["status"]["token"])

    config = yaml.safe_load(call.server.read_text())
    config["users"][0]["user"] = {"token": asyncio.run(token())}
    file = folder / f"{name}.kubeconfig"
    file.write_text(yaml.safe_dump(config))
    return file
