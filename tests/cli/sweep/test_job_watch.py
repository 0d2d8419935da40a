"""Watching a Job: runs counted by what pods print, reasons of pods told once, trouble of the API server outlived."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path
from typing import Any

import pytest

from stromboli.cli.following.pod_trouble import trouble
from stromboli.cli.output import Format
from stromboli.cli.sweep.job_watch import JobEnd, JobWatch
from stromboli.cli.sweep.sweep_on_cluster import ClusterSweep
from stromboli.cli.sweep.sweep_options import ClusterOptions, SweepOptions
from stromboli.cli.sweep.sweep_progress import Counts, SweepProgress
from stromboli.kube.request import ApiError, NoResponse
from stromboli.simulator.sweeps.cluster_job import JobSettings
from stromboli.simulator.sweeps.results_folder import ResultsFolder
from tests.simulator.sweeps.grids import plan_in

Manifest = dict[str, Any]


class Moments:
    """A Job as it is from look to look; in the place of the requests about it."""

    name = "sweep-a"

    def __init__(self, *moments: tuple[str, dict[str, tuple[Manifest, str]]] | Exception) -> None:
        self._moments = list(moments)
        self._pods: dict[str, tuple[Manifest, str]] = {}

    async def job(self) -> Manifest | None:
        moment = self._moments.pop(0)
        if isinstance(moment, Exception):
            raise moment
        phase, self._pods = moment
        return {"status": {"state": {"phase": phase}}} if phase else None

    async def pods(self) -> list[Manifest]:
        return [{"metadata": {"name": name}, "status": status} for name, (status, _) in self._pods.items()]

    async def log_end(self, pod: str) -> str:
        return self._pods[pod][1]


def watched(requests: Any, total: int, runs: int) -> tuple[JobEnd, SweepProgress]:
    async def no_pause(_: float) -> None:
        pass

    progress = SweepProgress(Counts(total, total - runs))
    return asyncio.run(JobWatch(requests, progress, total, runs, no_pause).until_end()), progress


def cluster_sweep(folder: Path) -> ClusterSweep:
    """A sweep of one run."""
    plan = plan_in(folder, "options: {swf: a.swf}")
    given = SweepOptions(Path("g.yaml"), None, None, False, None, None, True, Format.TABLE, "")
    cluster = ClusterOptions("results", "", "", "", "", 1, None, False, "", "", None)
    settings = JobSettings("default", "results", "image", 1)
    return ClusterSweep(plan, given, cluster, settings, ResultsFolder(folder / "results"), True)


def test_an_interruption_ends_the_watching_and_not_the_job(tmp_path: Path) -> None:
    class Interrupted(Moments):
        async def log_end(self, pod: str) -> str:
            os.kill(os.getpid(), signal.SIGINT)
            return ""

    requests: Any = Interrupted(("Running", {"p-0": (RUNNING, "")}))
    assert asyncio.run(cluster_sweep(tmp_path)._watch(requests, 1)) is None


RUNNING: Manifest = {"phase": "Running"}
ENDED: Manifest = {"phase": "Succeeded"}


def test_runs_are_counted_until_the_job_has_ended(capsys: pytest.CaptureFixture[str]) -> None:
    job = Moments(
        ("Pending", {}),
        ("Running", {"p-0": (RUNNING, "[1/2] a: done in 1 s"), "p-1": (RUNNING, "")}),
        NoResponse("no answer"),
        ApiError(503, "ServiceUnavailable", "later"),
        ("Completed", {"p-0": (ENDED, "[2/2] b"), "p-1": (ENDED, "[1/1, 1 failed] c: failed")}),
    )
    end, progress = watched(job, total=5, runs=3)
    assert end == JobEnd("Completed", "", 2, 1, False)
    assert progress.counts == Counts(5, 4, 0, 1)
    told = capsys.readouterr().err
    assert "[3/5] 2 running" in told
    assert "[5/5, 1 failed] 0 running" in told
    assert "warning: the API server: no answer" in told


def test_a_job_that_somebody_deletes_has_ended_short() -> None:
    end, _ = watched(Moments(("Running", {}), ("", {})), 2, 2)
    assert end == JobEnd("Deleted", "somebody deleted it", 0, 0, True)


def test_a_refusal_ends_the_watch() -> None:
    with pytest.raises(ApiError):
        watched(Moments(ApiError(403, "Forbidden", "no")), 1, 1)


def test_what_is_wrong_with_a_pod_is_told_once_with_its_reason(capsys: pytest.CaptureFixture[str]) -> None:
    waiting = {
        "phase": "Pending",
        "containerStatuses": [{"state": {"waiting": {"reason": "ImagePullBackOff"}}}],
    }
    pods = {"p-0": (waiting, "")}
    watched(Moments(("Running", pods), ("Running", pods), ("Failed", pods)), 1, 1)
    assert capsys.readouterr().err.count("warning: p-0: ImagePullBackOff") == 1


def test_a_pod_that_ends_with_an_error_is_told_with_it(capsys: pytest.CaptureFixture[str]) -> None:
    crashed = {
        "phase": "Running",
        "containerStatuses": [{"state": {"waiting": {"reason": "CrashLoopBackOff"}}}],
    }
    pods = {"p-0": (crashed, "error: sweep.json: made by stromboli 9, and this is 1\n")}
    watched(Moments(("Running", pods), ("", {})), 1, 1)
    assert "warning: p-0: CrashLoopBackOff: error: sweep.json: made by stromboli 9" in capsys.readouterr().err


def test_results_that_cannot_be_reached_are_told_with_the_way_to_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sweep = cluster_sweep(tmp_path)
    assert sweep._finish(None, JobEnd("Completed", "", 1, 0, False)) == 0
    assert "runs done: 1, with their records in claim results, folder grid." in capsys.readouterr().out
    assert sweep._finish(None, JobEnd("Failed", "", 0, 0, True)) == 1


@pytest.mark.parametrize(
    ("status", "said"),
    [
        ({"phase": "Running"}, ""),
        ({"phase": "Failed", "reason": "Evicted", "message": "low on memory"}, "Evicted: low on memory"),
        (
            {"containerStatuses": [{"state": {"terminated": {"exitCode": 137, "reason": "OOMKilled"}}}]},
            "OOMKilled: exit code 137",
        ),
        (
            {"containerStatuses": [{"state": {"waiting": {"reason": "ErrImagePull", "message": "none"}}}]},
            "ErrImagePull: none",
        ),
        ({"containerStatuses": [{"state": {"waiting": {"reason": "ContainerCreating"}}}]}, ""),
        (
            {
                "containerStatuses": [
                    {
                        "state": {"running": {}},
                        "restartCount": 2,
                        "lastState": {"terminated": {"reason": "OOMKilled", "exitCode": 137}},
                    }
                ]
            },
            "restarted after OOMKilled (2)",
        ),
        (
            {
                "conditions": [
                    {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/1"}
                ]
            },
            "Unschedulable: 0/1",
        ),
    ],
)
def test_the_trouble_of_a_pod_has_the_reason_of_its_node_or_the_scheduler(
    status: Manifest, said: str
) -> None:
    assert trouble(status) == said
