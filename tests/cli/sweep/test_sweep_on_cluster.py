"""A sweep as a Job on real nodes of `stromboli up`: pods are processes, the volume is a folder."""

from __future__ import annotations

import asyncio
import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from typer.testing import CliRunner, Result

from stromboli.cli.cluster.cluster_kinds import JOBS, PODS
from stromboli.cli.main import app
from stromboli.cli.output import Format
from stromboli.cli.sweep.local_sweep import planned
from stromboli.cli.sweep.sweep_job_manifests import manifests
from stromboli.cli.sweep.sweep_job_requests import CLAIMS, SweepJobRequests
from stromboli.cli.sweep.sweep_options import SweepOptions
from stromboli.kube.api_client import Client
from stromboli.kube.cluster_access import find_access
from stromboli.simulator.sweeps.cluster_job import JobSettings, job_name
from tests.cli.sweep.test_sweep import TRACE
from tests.embedded.up_process import Up

pytestmark = pytest.mark.slow

CLAIM = {
    "apiVersion": "v1",
    "kind": "PersistentVolumeClaim",
    "metadata": {"name": "results"},
    "spec": {"accessModes": ["ReadWriteMany"], "resources": {"requests": {"storage": "1Gi"}}},
}
GRID = """
options: {swf: a.swf}
axes:
  backfill: [none, easy]
  policy:
    own: {}
    wrong: {policy: wrong.yaml}
exclude: [{backfill: easy, policy: wrong}]
"""


@pytest.fixture
def up(tmp_path: Path) -> Iterator[Up]:
    (tmp_path / "up").mkdir()
    with Up(
        tmp_path / "up" / "data", "--nodes", "1x4cpu,8Gi", "--real", "--schedule-period", "200ms"
    ) as running:
        yield running


def asked(up: Up, verb: str, *arguments: Any) -> Any:
    """A request to the API server of the cluster."""

    async def ask() -> bytes:
        async with Client(find_access(str(up.data / "kubeconfig"))) as client:
            body: bytes = await getattr(client, verb)(*arguments)
            return body

    return msgspec.json.decode(asyncio.run(ask()))


def create_job(up: Up) -> str:
    """Create the Job of the sweep with two pods, as an earlier command has done; its uid."""
    given = SweepOptions(Path("study.yaml"), None, None, False, None, None, False, Format.TABLE, "")
    plan = planned(given)
    settings = JobSettings("default", "results", "none", 2, "", {"cpu": "100m"})

    async def create() -> str:
        async with Client(find_access(str(up.data / "kubeconfig"))) as client:
            requests = SweepJobRequests(client, "default", job_name(plan))
            await requests.create(manifests(requests.name, plan, settings, exported=False, reachable=False))
            job = await requests.job()
            assert job is not None
            return str(job["metadata"]["uid"])

    return asyncio.run(create())


def sweep(up: Up, *arguments: str) -> Result:
    words = [
        "sweep",
        "study.yaml",
        "--on-cluster",
        "--claim",
        "results",
        "--requests",
        "cpu=100m",
        *arguments,
    ]
    return CliRunner().invoke(app, words, env=up.environment, catch_exceptions=False)


def test_a_sweep_on_a_cluster_goes_on_until_everything_is_there(
    up: Up, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a.swf").write_text(TRACE)
    Path("wrong.yaml").write_text('actions: "alocate"\n')
    Path("study.yaml").write_text(GRID)
    assert "--claim results: no such PersistentVolumeClaim in namespace default" in sweep(up).stderr
    asked(up, "create", CLAIMS, CLAIM, "default")
    created = create_job(up)

    first = sweep(up, "-o", "json")  # it is found running, as after Ctrl-C
    (job,) = asked(up, "list", JOBS, "default")["items"]
    assert job["metadata"]["uid"] == created
    assert first.exit_code == 1, first.output
    assert "[3/3, 1 failed]" in first.stderr
    here = f"  stromboli simulate --swf {tmp_path}/a.swf --backfill none --policy {tmp_path}/wrong.yaml "
    assert f"error: backfill=none policy=wrong: exit status 2\n{here}" in first.stderr
    assert "alocate" in first.stderr
    shown = json.loads(first.stdout)
    assert (shown["done"], [failed["title"] for failed in shown["failed"]]) == (
        2,
        ["backfill=none policy=wrong"],
    )
    pods = asked(up, "list", PODS, "default")["items"]
    assert sorted(pod["status"]["phase"] for pod in pods) == ["Succeeded", "Succeeded"]
    assert all(pod["status"]["containerStatuses"][0]["restartCount"] == 0 for pod in pods)

    Path("wrong.yaml").write_text('actions: "enqueue, allocate"\ntiers: [{plugins: [{name: gang}]}]\n')
    before = {job["metadata"]["name"] for job in asked(up, "list", JOBS, "default")["items"]}
    Path("large.swf").write_text(TRACE + "; more\n" * 150_000)  # no ConfigMap holds this
    Path("study.yaml").write_text(GRID.replace("wrong: {", "wrong: {swf: large.swf, "))
    second = sweep(
        up, "-o", "json"
    )  # two runs are there already: one is left, under a policy that is right now
    assert second.exit_code == 0, second.output
    assert "[2/3] done already" in second.stderr
    assert json.loads(second.stdout)["done"] == 3
    (job,) = [
        job for job in asked(up, "list", JOBS, "default")["items"] if job["metadata"]["name"] not in before
    ]
    assert job["spec"]["tasks"][0]["replicas"] == 1
    assert [volume["name"] for volume in job["spec"]["tasks"][0]["template"]["spec"]["volumes"]] == [
        "results"
    ]

    shutil.rmtree("study-results")  # whatever is in the volume is collected again, and nothing runs
    third = sweep(up)
    assert (third.exit_code, third.stderr) == (0, ""), third.output
