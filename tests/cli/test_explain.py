"""`stromboli explain` on files, on a dump and on a live cluster."""

import asyncio
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import Result

from stromboli.cli.status.cluster_policy import CONFIG_MAP
from stromboli.kube.api_client import Client
from stromboli.kube.api_resources import resource_of
from stromboli.kube.cluster_access import find_access
from stromboli.simulator.cluster_notation import nodes, queues
from stromboli.simulator.job_manifests import job_manifests
from tests.embedded.background_server import background_server
from tests.simulator.what_if.questions import GANGS, running

Run = Callable[..., Result]
Manifest = dict[str, Any]
NOON = ("--now", "2026-11-01T12:00:00Z")


def test_the_answer_comes_first_and_what_helps_was_tried(run: Run, cluster: Path) -> None:
    result = run("explain", "huge", "-f", cluster, *NOON)
    assert result.exit_code == 0, result.output
    lines = result.stdout.splitlines()
    assert lines[0].startswith("PodGroup default/huge waits: ")
    assert "It would start if" in lines
    assert "  - minMember is 1 instead of 2" in lines


def test_json_and_yaml_have_the_whole_document(run: Run, cluster: Path) -> None:
    arguments = ("explain", "huge", "queue/research", "node/n1", "-f", cluster, *NOON)
    document = json.loads(run(*arguments, "-o", "json").stdout)
    assert document == yaml.safe_load(run(*arguments, "-o", "yaml").stdout)
    assert [subject["subject"] for subject in document["subjects"]] == ["job", "queue", "node"]
    assert (document["schema"], document["now"]) == (1, "2026-11-01T12:00:00Z")
    remedies = {remedy["kind"]: remedy for remedy in document["subjects"][0]["remedies"]}
    assert remedies["minimum"]["changes"] == [
        {
            "operation": "patch",
            "kind": "PodGroup",
            "names": ["huge"],
            "namespace": "default",
            "patch": {"spec": {"minMember": 1}},
        }
    ]


def test_without_trials_nothing_is_tried(run: Run, cluster: Path) -> None:
    document = json.loads(run("explain", "huge", "-f", cluster, *NOON, "--no-trials", "-o", "json").stdout)
    (job,) = document["subjects"]
    assert (job["remedies"], job["in_vain"], job["forecast"]) == ([], [], None)
    assert job["wait"]["gate"] == "nodes"


def test_a_dump_brings_its_time_and_its_policy(run: Run, tmp_path: Path) -> None:
    dump = tmp_path / "dump.json"
    objects = [*nodes("n1 cpu=4"), *job_manifests("train", cpu=8)]
    dump.write_text(json.dumps({"time": "2026-11-01T12:00:00Z", "config": GANGS, "objects": objects}))
    document = json.loads(run("explain", "train", "-f", dump, "-o", "json").stdout)
    assert (document["now"], document["subjects"][0]["state"]) == ("2026-11-01T12:00:00Z", "waits")


def test_what_does_not_exist_is_told_with_exit_status_1(run: Run, cluster: Path) -> None:
    result = run("explain", "nobody", "-f", cluster)
    assert result.exit_code == 1
    assert 'no job, PodGroup, pod, queue or node named "nobody"' in result.stderr


def test_wrong_usage_has_exit_status_2(run: Run, cluster: Path) -> None:
    for arguments, why in [
        (("secret/x", "-f", cluster), "unknown type 'secret'"),
        (("huge", "-f", cluster, "--kubeconfig", "k"), "cannot be combined with -f"),
        (("huge", *NOON), "--now requires -f"),
    ]:
        result = run("explain", *arguments)
        assert result.exit_code == 2, result.output
        assert why in result.stderr


def test_hostile_names_and_messages_are_shown_harmlessly(run: Run, tmp_path: Path) -> None:
    """Names with escapes come from dumps, whose objects no API server has checked."""
    evil = "x\x1b[31m\x07"
    objects = [
        *nodes("n1 cpu=4"),
        *job_manifests("train", cpu=8, annotations={"stromboli.sh/time-limit": evil}, labels={"a": "b"}),
    ]
    condition = {
        "type": "Unschedulable",
        "status": "True",
        "reason": evil,
        "message": evil + "m" * 3_000_000,
        "lastTransitionTime": "2026-11-01T11:00:00Z",
    }
    group = next(each for each in objects if each["kind"] == "PodGroup")
    group["status"]["conditions"] = [condition]
    group["spec"]["queue"] = "q-evil"
    dump = tmp_path / "dump.json"
    dump.write_text(json.dumps({"objects": objects}))
    for name in ("train", evil):
        result = run("explain", name, "-f", dump, *NOON)
        assert "\x1b" not in result.output
        assert "\x07" not in result.output
        assert len(result.output) < 100_000


# -- a live cluster


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The kubeconfig of an API server with a full node and a job that waits."""
    folder = tmp_path_factory.mktemp("server")
    with background_server(folder, crds=True):
        namespace, name, key = CONFIG_MAP
        container = {"name": "c", "image": "busybox", "resources": {"requests": {"cpu": "4"}}}
        config = {"metadata": {"name": name, "namespace": namespace}, "data": {key: GANGS}}
        objects = [
            {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}},
            {"apiVersion": "v1", "kind": "ConfigMap", **config},
            *nodes("n1 cpu=4"),
            *queues("own"),
            *running("old", "n1", 0, "1h", queue="own", spec={"containers": [container]}),
            *job_manifests("new", queue="own", phase="Pending", spec={"containers": [container]}),
        ]
        asyncio.run(create(folder / "kubeconfig", objects))
        yield folder / "kubeconfig"


async def create(kubeconfig: Path, objects: list[Manifest]) -> None:
    async with Client(find_access(str(kubeconfig))) as client:
        for content in objects:
            await client.create(resource_of(content), content, content["metadata"].get("namespace", ""))


def test_a_live_cluster_is_explained_with_its_own_policy(run: Run, server: Path, tmp_path: Path) -> None:
    home = {"HOME": str(tmp_path), "XDG_RUNTIME_DIR": str(tmp_path), "KUBECONFIG": ""}
    result = run("explain", "new", "--kubeconfig", server, "-o", "json", env=home)
    assert result.exit_code == 0, result.output
    document = json.loads(result.stdout)
    assert document["policy"] == "volcano-system/volcano-scheduler-configmap"
    (job,) = document["subjects"]
    assert (job["state"], job["queue"]) == ("waits", "own")
    assert [holder["job"] for holder in job["holders"]] == ["default/old"]
    assert "end" in {remedy["kind"] for remedy in job["remedies"]}
    elsewhere = run("explain", "new", "--kubeconfig", server, "-n", "kube-system", env=home)
    assert elsewhere.exit_code == 1
    assert "found in namespace default" in elsewhere.stderr


def test_a_cluster_that_does_not_answer_has_exit_status_1(run: Run, tmp_path: Path) -> None:
    kubeconfig = tmp_path / "kubeconfig"
    cluster = {"name": "c", "cluster": {"server": "https://127.0.0.1:1"}}
    context = {"name": "c", "context": {"cluster": "c", "user": "u"}}
    content = {"clusters": [cluster], "contexts": [context], "users": [{"name": "u", "user": {}}]}
    kubeconfig.write_text(yaml.safe_dump({**content, "current-context": "c"}))
    assert run("explain", "x", "--kubeconfig", kubeconfig).exit_code == 1
