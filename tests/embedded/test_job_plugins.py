"""A job plugin of your own on a cluster of `stromboli up`: admission lets it through, and pods are dressed by it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from stromboli.cli.main import app
from tests.embedded.up_process import Up

OWN = """
from stromboli.controllers.job.plugins.job_plugin import JobPlugin
from stromboli.controllers.job.job_pods import containers, extend

class RunName(JobPlugin):
    name = "run-name"

    def dress(self, member, pod):
        for container in containers(pod["spec"]):
            extend(container, "env", {"name": "RUN_NAME", "value": f"run-{member.index}"})
"""
JOB = {
    "apiVersion": "batch.volcano.sh/v1alpha1",
    "kind": "Job",
    "metadata": {"name": "own"},
    "spec": {
        "plugins": {"run-name": []},
        "tasks": [
            {"name": "t", "replicas": 1, "template": {"spec": {"containers": [{"name": "c", "image": "i"}]}}}
        ],
    },
}


@pytest.mark.programs("kubectl")
def test_a_job_may_name_a_plugin_of_the_users_own(tmp_path: Path) -> None:
    folder = tmp_path / "plugins"
    folder.mkdir()
    (folder / "run_name.py").write_text(OWN)
    with Up(tmp_path / "data", "--nodes", "1x4cpu,8Gi", "--job-plugins-dir", str(folder)) as cluster:
        cluster.kubectl("create", "-f", "-", stdin=json.dumps(JOB))
        running = ["--for=jsonpath={.status.state.phase}=Running", "--timeout=40s"]
        cluster.kubectl("wait", *running, "jobs.batch.volcano.sh/own")
        (container,) = cluster.json("get", "pod", "own-t-0")["spec"]["containers"]
        assert {"name": "RUN_NAME", "value": "run-0"} in container["env"]


def test_a_plugin_that_cannot_be_read_is_told_at_once(tmp_path: Path) -> None:
    (tmp_path / "bad.py").write_text("import nothing_of_that_name\n")
    done = CliRunner().invoke(app, ["up", "--data", str(tmp_path / "d"), "--job-plugins-dir", str(tmp_path)])
    assert done.exit_code == 2
    assert "bad.py" in done.output
