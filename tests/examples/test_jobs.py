"""The examples of jobs are valid, give the pods that they promise, and run to their ends."""

import time
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml
from typer.testing import CliRunner

from stromboli.api.types.volcano_job import Job
from stromboli.cli.main import app
from tests.controllers.job.simulated_job import SimulatedJob
from tests.embedded.up_process import Up

FOLDER = Path(__file__).parents[2] / "examples" / "jobs"
JOBS = [FOLDER / f"{name}.yaml" for name in ("mpi", "pytorch", "ray", "roles", "sweep", "tensorflow")]
LOCAL = ["roles", "sweep"]
"""Made of programs that every machine has."""


def manifest(path: Path) -> dict[str, Any]:
    content: dict[str, Any] = yaml.safe_load(path.read_text())
    return content


def test_there_is_nothing_to_complain_about() -> None:
    done = CliRunner().invoke(app, ["lint", str(FOLDER)])
    assert done.exit_code == 0, done.output


@pytest.mark.parametrize("path", JOBS, ids=lambda path: path.stem)
def test_an_example_comes_to_its_pods(path: Path) -> None:
    whole = manifest(path)
    whole["metadata"] |= {"namespace": "team", "uid": "u1"}
    whole["spec"].setdefault("queue", "default")
    job = msgspec.convert(whole, Job)
    simulated = SimulatedJob(job).settle().set_all("Running").settle()
    assert len(simulated.alive) == sum(task.replicas for task in job.spec.tasks)
    assert (simulated.phase, simulated.recorded) == ("Running", [])


def finished(cluster: Up, names: list[str], seconds: float = 60.0) -> dict[str, str]:
    """The phases of jobs, once none of them goes on."""
    end = time.monotonic() + seconds
    while True:
        items = cluster.json("get", "jobs.batch.volcano.sh")["items"]
        phases = {
            job["metadata"]["name"]: job["status"]["state"]["phase"] for job in items if "status" in job
        }
        if phases.keys() >= set(names) and set(phases.values()) <= {"Completed", "Failed", "Terminated"}:
            return phases
        assert time.monotonic() < end, (phases, cluster.kubectl("get", "pods"))
        time.sleep(0.3)


@pytest.mark.programs("kubectl")
def test_every_example_completes_on_simulated_nodes(tmp_path: Path) -> None:
    options = ["--nodes", "4x8cpu,32Gi", "--start-delay", "100ms", "--schedule-period", "200ms"]
    with Up(tmp_path / "data", *options) as cluster:
        for path in JOBS:
            cluster.kubectl("apply", "-f", str(path))
        phases = finished(cluster, [path.stem for path in JOBS])
        assert phases == dict.fromkeys(sorted(phases), "Completed")


@pytest.mark.programs("kubectl")
def test_some_run_as_programs_of_this_machine(tmp_path: Path) -> None:
    options = ["--real", "--nodes", "2x4cpu,8Gi", "--schedule-period", "200ms"]
    with Up(tmp_path / "data", *options) as cluster:
        for name in LOCAL:
            cluster.kubectl("apply", "-f", str(FOLDER / f"{name}.yaml"))
        assert finished(cluster, LOCAL) == dict.fromkeys(LOCAL, "Completed")
        assert cluster.kubectl("logs", "sweep-run-5") == "learning rate 0.005\n"
        assert cluster.json("get", "jobs.batch.volcano.sh", "roles")["status"]["succeeded"] >= 2
