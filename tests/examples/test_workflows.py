"""The examples of flows and cron jobs, on a cluster of `stromboli up`. (docs/workflows.md runs the flow itself.)"""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest
import yaml

from tests.docs.pages import ROOT
from tests.embedded.up_process import Up

EXAMPLES = ROOT / "examples" / "jobs"


@pytest.mark.programs("kubectl")
def test_the_cron_job_starts_its_gang(tmp_path: Path) -> None:
    """As it stands, and then with a schedule for which no test has to wait until half past two."""
    (cron,) = yaml.safe_load_all((EXAMPLES / "cronjob.yaml").read_text())
    with Up(tmp_path / "data", "--nodes", "2x4cpu,8Gi") as cluster:
        cluster.kubectl("apply", "-f", str(EXAMPLES / "cronjob.yaml"))
        cron["spec"]["schedule"] = "@every 1s"
        cluster.kubectl("apply", "-f", "-", stdin=json.dumps(cron))
        end = time.monotonic() + 40
        jobs: list[str] = []
        while not jobs and time.monotonic() < end:
            jobs = cluster.kubectl("get", "jobs.batch.volcano.sh", "-o", "name").split()
            time.sleep(0.2)
        assert jobs
        cluster.kubectl("wait", "--for=jsonpath={.status.state.phase}=Completed", "--timeout=40s", jobs[0])
        name = jobs[0].partition("/")[2]  # the next one may run already
        pods = cluster.json("get", "pods", "-l", f"volcano.sh/job-name={name}")["items"]
        assert [pod["status"]["phase"] for pod in pods] == ["Succeeded"] * 2
        status = cluster.json("get", "cronjobs.batch.volcano.sh", "cleanup")["status"]
        assert "lastScheduleTime" in status
