"""Notes of a run say why jobs never started, once for all that wait for the same."""

from __future__ import annotations

from math import inf

import pytest

from stromboli.policy.policy import load_policy
from stromboli.simulator.cluster_notation import nodes
from stromboli.simulator.runs import waiting_reasons
from stromboli.simulator.runs.simulation import simulate
from stromboli.simulator.workloads.submitted_jobs import SubmittedJob, Workload
from tests.simulator.runs.small_runs import BATCH, CATALOG, job, run

GPU_JOBS = [SubmittedJob(f"gpu-{n}", n, 10.0, requests={"nvidia.com/gpu": 1}) for n in range(60)]
NO_GPUS = (
    "nodes are unavailable: Insufficient nvidia.com/gpu; no node is large enough: request less "
    "nvidia.com/gpu per pod or add larger nodes"
)


def test_jobs_that_wait_for_the_same_share_a_note() -> None:
    record = run(job("large", cpu=5), *GPU_JOBS)
    assert len(record.notes) == 2
    assert record.notes[0].startswith("1 job never started: nodes are unavailable: Insufficient cpu; ")
    assert record.notes[1] == f"60 jobs never started: {NO_GPUS} (gpu-0, gpu-1, gpu-2 and 57 more)"


def test_only_the_first_are_asked_and_the_others_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waiting_reasons, "ASKED", 4)
    assert run(*GPU_JOBS).notes == [
        f"4 jobs never started: {NO_GPUS} (gpu-0, gpu-1, gpu-2 and 1 more)",
        "56 more jobs never started: gpu-4, gpu-5, gpu-6 and 53 more",
    ]


def test_pods_beyond_the_minimum_that_never_start_are_told_with_their_reason() -> None:
    full = job("full", run=inf, cpu=3)
    urgent = job("urgent", at=5, run=inf, priority=10)
    [note] = run(full, job("elastic", pods=2, minimum=1), urgent).notes
    assert note.startswith("1 job has pods that never started: nodes are unavailable: Insufficient cpu; ")
    assert note.endswith(" (elastic)")


def test_of_an_interrupted_run_the_jobs_are_told_without_a_reason() -> None:
    def interrupt(done: int, now: float) -> None:
        raise KeyboardInterrupt

    workload = Workload("small", (job("large", cpu=5),), tuple(nodes("n1 cpu=4")))
    record = simulate(workload, [], load_policy(BATCH, CATALOG), CATALOG, progress=interrupt)
    assert record.partial
    assert record.notes == ["1 job had not started yet: large"]
