"""`stromboli policy show --in-force`, `diff` and `apply`, on a cluster that keeps its policy in a ConfigMap."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import Result

from stromboli.cli.policy.policy_place import PolicyPlace, put_policy
from stromboli.kube.api_client import Client
from stromboli.kube.api_resources import resource_of
from stromboli.kube.cluster_access import find_access
from stromboli.policy.presets import PRESETS
from stromboli.simulator.cluster_notation import nodes, queues
from stromboli.simulator.job_manifests import job_manifests
from tests.embedded.background_server import background_server

Run = Callable[..., Result]
Manifest = dict[str, Any]
NAMESPACE, NAME, KEY = "volcano-system", "volcano-scheduler-configmap", "volcano-scheduler.conf"
NO_ROOM = 'actions: "enqueue"\ntiers:\n- plugins:\n  - name: gang\n'


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The kubeconfig of a cluster with a node and a job that waits for it."""
    folder = tmp_path_factory.mktemp("server")
    with background_server(folder, crds=True):
        kubeconfig = folder / "kubeconfig"
        namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}
        job = job_manifests("train", namespace="default", queue="own", phase="Inqueue", pods=2, cpu=1)
        for pod in job[1:]:
            pod["spec"]["containers"][0]["image"] = "train"
        asyncio.run(create(kubeconfig, [namespace, *nodes("n1 cpu=8"), *queues("own"), *job]))
        yield kubeconfig


async def create(kubeconfig: Path, objects: list[Manifest]) -> None:
    async with Client(find_access(str(kubeconfig))) as client:
        for content in objects:
            await client.create(resource_of(content), content, content["metadata"].get("namespace", ""))


@pytest.fixture
def policy_command(run: Run, server: Path, tmp_path: Path) -> Callable[..., Result]:
    """`policy_command("diff", FILE)` on that cluster, without any other of this user."""
    environment = {"KUBECONFIG": str(server), "HOME": str(tmp_path), "XDG_RUNTIME_DIR": str(tmp_path)}
    return lambda *arguments: run("policy", *arguments, env=environment)


def written(tmp_path: Path, text: str) -> Path:
    file = tmp_path / "policy.conf"
    file.write_text(text)
    return file


def test_a_policy_that_is_applied_is_in_force_and_makes_no_difference_any_more(
    policy_command: Run, tmp_path: Path
) -> None:
    key = ("--configmap", f"{NAMESPACE}/first")
    file = written(tmp_path, NO_ROOM)
    assert policy_command("apply", file, *key, "--yes").exit_code == 0
    assert policy_command("show", "--in-force", *key).stdout == NO_ROOM
    same = policy_command("diff", file, *key)
    assert (same.exit_code, "does the same" in same.stdout) == (0, True)


def test_what_the_next_cycle_would_decide_otherwise_is_told(policy_command: Run, tmp_path: Path) -> None:
    key = ("--configmap", f"{NAMESPACE}/second")
    policy_command("apply", written(tmp_path, NO_ROOM), *key, "--yes")
    result = policy_command("diff", "--preset", "basic", *key)
    assert result.exit_code == 1, result.output
    assert "default/train: 2 pods would start that wait now" in result.stdout
    document = json.loads(policy_command("diff", "--preset", "basic", *key, "-o", "json").stdout)
    assert document["decisions"]["starts"] == {"default/train": 2}
    assert document["settings"][0]["setting"] == "actions"
    plain = policy_command("diff", "--preset", "basic", *key, "--no-decisions")
    assert "next cycle" not in plain.stdout


def test_a_wrong_policy_is_never_applied(policy_command: Run, tmp_path: Path) -> None:
    key = ("--configmap", f"{NAMESPACE}/third")
    result = policy_command("apply", written(tmp_path, 'actions: "alocate"\n'), *key, "--yes")
    assert (result.exit_code, 'did you mean "allocate"' in result.stderr) == (2, True)
    assert "has no policy" in policy_command("diff", "--preset", "basic", *key).stderr


@pytest.fixture
def reader(server: Path, tmp_path: Path) -> Path:
    """The kubeconfig of a user who may read ConfigMaps and change none."""
    config = json.loads(server.read_text())
    config["users"][0]["user"]["as"] = "reader"
    rbac = {"apiVersion": "rbac.authorization.k8s.io/v1", "metadata": {"name": "reader"}}
    group = "rbac.authorization.k8s.io"
    binding = {
        **rbac,
        "kind": "ClusterRoleBinding",
        "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": "view"},
        "subjects": [{"apiGroup": group, "kind": "User", "name": "reader"}],
    }
    asyncio.run(create(server, [binding]))
    path = tmp_path / "reader"
    path.write_text(json.dumps(config))
    return path


def test_a_missing_permission_to_replace_a_policy_is_reported_before_anything_is_shown(
    policy_command: Run, tmp_path: Path, reader: Path
) -> None:
    user = ("--kubeconfig", str(reader), "--yes")
    file = written(tmp_path, NO_ROOM)
    for place in ("sixth", "seventh"):
        result = policy_command("apply", file, "--configmap", f"{NAMESPACE}/{place}", *user)
        assert (result.exit_code, result.stdout) == (1, ""), result.output
        assert "configmaps" in result.stderr
        policy_command("apply", "--preset", "basic", "--configmap", f"{NAMESPACE}/seventh", "--yes")
    groups = tmp_path / "groups.conf"
    groups.write_text("resourceGroups:\n- resourceGroup: cpu\n  labels: {zone: a}\n")
    result = policy_command("apply", "--admission", groups, *user)
    assert (result.exit_code, result.stdout) == (1, ""), result.output


def test_a_dry_run_reports_a_file_that_may_not_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = written(tmp_path, PRESETS["basic"])
    monkeypatch.setattr("os.access", lambda path, mode: path != file.parent)
    nobody: Any = None
    place = PolicyPlace(str(file), PRESETS["basic"], file=file)
    with pytest.raises(Exception, match="no permission to write"):
        asyncio.run(put_policy(nobody, place, PRESETS["full"], dry_run=True))
    assert file.read_text() == PRESETS["basic"]


def test_a_dry_run_changes_nothing(policy_command: Run) -> None:
    key = ("--configmap", f"{NAMESPACE}/fourth")
    for where in ("client", "server"):
        result = policy_command("apply", "--preset", "basic", *key, f"--dry-run={where}")
        assert (result.exit_code, "dry run" in result.stdout) == (0, True)
    assert policy_command("show", "--in-force", *key).stdout == ""


def test_a_policy_is_printed_as_it_is_so_that_it_can_be_mended(policy_command: Run, tmp_path: Path) -> None:
    key = ("--configmap", f"{NAMESPACE}/fifth")
    text = f"{NO_ROOM}# {'long ' * 1000}\t\u202e\n"
    assert policy_command("apply", written(tmp_path, text), *key, "--yes").exit_code == 0
    assert policy_command("show", "--in-force", *key).stdout == text
    nothing = policy_command("show", "--in-force", "--configmap", f"{NAMESPACE}/none")
    assert (nothing.exit_code, nothing.stdout) == (0, "")
    assert "the built-in one is in force: `stromboli policy show default`" in nothing.stderr


def test_a_cluster_that_does_not_answer_is_no_difference(run: Run, server: Path, tmp_path: Path) -> None:
    gone = tmp_path / "kubeconfig"
    gone.write_text(re.sub(r"127\.0\.0\.1:\d+", "127.0.0.1:1", server.read_text()))
    result = run("policy", "diff", "--preset", "basic", "--kubeconfig", gone)
    assert (result.exit_code, result.stdout) == (2, "")


def test_a_preset_or_a_file_is_needed_and_the_config_map_has_a_namespace(policy_command: Run) -> None:
    assert "give a file or --preset NAME" in policy_command("diff").stderr
    wrong = policy_command("diff", "--preset", "basic", "--configmap", "nowhere")
    assert (wrong.exit_code, "NAMESPACE/NAME" in wrong.stderr) == (2, True)


def test_the_configuration_of_admission_is_checked_shown_and_written(
    policy_command: Run, tmp_path: Path
) -> None:
    file = tmp_path / "groups.conf"
    file.write_text("resourceGroups:\n- resourceGroup: gpu\n  labels: {accelerator: 'true'}\n")
    tried = policy_command("apply", "--admission", file, "--dry-run=server")
    assert (tried.exit_code, "server dry run" in tried.stdout) == (0, True), tried.output
    written_once = policy_command("apply", "--admission", file)
    assert written_once.exit_code == 0, written_once.output
    assert "+- resourceGroup: gpu" in written_once.stdout
    assert "replaced: 1 resource group" in written_once.stdout
    assert "no webhook mutatepod.volcano.sh is installed" in written_once.stderr
    assert "has it already" in policy_command("apply", "--admission", file).stdout
    file.write_text("resourceGroups: 5\n")
    wrong = policy_command("apply", "--admission", file)
    assert (wrong.exit_code, "not an admission configuration" in wrong.stderr) == (2, True)


def test_the_file_of_a_cluster_of_up_is_replaced_unless_it_has_changed_meanwhile(tmp_path: Path) -> None:
    file = written(tmp_path, PRESETS["basic"])
    file.chmod(0o640)
    nobody: Any = None
    place = PolicyPlace(str(file), PRESETS["basic"], file=file)
    asyncio.run(put_policy(nobody, place, PRESETS["full"], dry_run=False))
    assert (file.read_text(), file.stat().st_mode & 0o777) == (PRESETS["full"], 0o640)
    assert [entry.name for entry in tmp_path.iterdir()] == [file.name]
    with pytest.raises(Exception, match="has changed meanwhile"):
        asyncio.run(put_policy(nobody, place, PRESETS["basic"], dry_run=False))


def test_a_link_to_the_file_of_a_policy_stays_a_link(tmp_path: Path) -> None:
    file, link = written(tmp_path, PRESETS["basic"]), tmp_path / "link"
    link.symlink_to(file)
    nobody: Any = None
    place = PolicyPlace(str(link), PRESETS["basic"], file=link)
    asyncio.run(put_policy(nobody, place, PRESETS["full"], dry_run=False))
    assert (file.read_text(), link.is_symlink()) == (PRESETS["full"], True)
