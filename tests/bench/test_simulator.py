"""The benchmark of the simulator: what it keeps, what it compares, and the month that it generates."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.simulator import simulator_runs
from bench.simulator.gpu_packing import PackingSizes, Series, all_series, findings
from bench.simulator.month_of_jobs import PROCESSORS, write_month
from bench.simulator.simulator_runs import RunFailed, RunResult, SimulatorRun, kept, run_all
from bench.simulator.trace_backfill import other_starts, trace_runs
from tests.simulator.textbook_backfill import RigidJob, measures, read_trace, schedule


def test_the_month_is_the_same_for_the_same_seed_and_makes_a_queue(tmp_path):
    write_month(tmp_path / "one.swf", 2000)
    write_month(tmp_path / "two.swf", 2000)
    assert (tmp_path / "one.swf").read_bytes() == (tmp_path / "two.swf").read_bytes()
    jobs, processors = read_trace(tmp_path / "one.swf")
    figures = measures(schedule(jobs, processors, "easy"), processors)
    assert (figures.jobs, processors) == (2000, PROCESSORS)
    assert figures.utilisation > 0.3
    assert figures.mean_wait_s > 60


def test_a_result_is_kept_until_its_files_change(tmp_path, monkeypatch):
    trace = tmp_path / "trace.swf"
    trace.write_text("; MaxProcs: 4\n")
    run = SimulatorRun("a run", ("--swf", str(trace)), (trace,))
    monkeypatch.setattr(simulator_runs, "_output_and_cpu", lambda command, scratch: (b'{"jobs": 7}', 1.5))
    assert kept(run, tmp_path) is None
    assert run_all([run], tmp_path, cores=1)[run] == RunResult({"jobs": 7}, 1.5)
    assert kept(run, tmp_path) == RunResult({"jobs": 7}, 1.5)
    trace.write_text("; MaxProcs: 5\n")
    simulator_runs._digest.cache_clear()
    assert kept(run, tmp_path) is None


def test_a_run_that_fails_is_told_with_its_command_and_not_kept(tmp_path):
    run = SimulatorRun("a run", ("--swf", str(tmp_path / "none.swf")), ())
    with pytest.raises(RunFailed, match=r"none\.swf"):
        run_all([run], tmp_path, cores=1)
    assert kept(run, tmp_path) is None


PUBLISHED = "trace,policy,seed,allocated_gpu_pct_at_arrived_130\nopenb_pod_list_default,BestFit,{},93.08\n"


@pytest.mark.parametrize(("allocation", "holds"), [(0.9308, True), (0.93075001, True), (0.9309, False)])
def test_replayed_runs_must_equal_the_published_to_two_decimals(tmp_path, allocation, holds):
    (tmp_path / "openb").mkdir()
    (tmp_path / "openb" / "published_allocation.csv").write_text(PUBLISHED.format(42))
    series = [
        each
        for each in all_series(tmp_path, PackingSizes(("default",), (42,), ()))
        if (each.score, each.sequence) == ("bestfit", "go")
    ]
    results = {series[0].runs[42]: RunResult({"gpu_allocation": allocation}, 3.0)}
    (table,) = findings(series, tmp_path, results)
    assert [check.holds for check in table.checks] == [holds, True]


def test_seeds_of_ours_are_compared_by_their_means(tmp_path):
    (tmp_path / "openb").mkdir()
    (tmp_path / "openb" / "published_allocation.csv").write_text(PUBLISHED.format(42))
    runs = {seed: SimulatorRun("", (str(seed),), ()) for seed in range(30)}
    series = [Series("default", "bestfit", "ours", runs)]
    for mean, holds in ((0.9350, True), (0.9365, False)):
        results = {run: RunResult({"gpu_allocation": mean}, 3.0) for run in runs.values()}
        (table,) = findings(series, tmp_path, results)
        assert table.checks[0].holds == holds


def test_starts_are_compared_job_by_job():
    reference = [RigidJob(1, 100, 5, 1, 5, start=100), RigidJob(2, 101, 5, 1, 5, start=110)]
    assert other_starts(reference, {"one": 0.0, "two": 10.0}) == 0
    assert other_starts(reference, {"one": 0.0, "two": None}) == 1


def test_a_quick_benchmark_uses_traces_that_come_along():
    runs = trace_runs(Path("/nowhere"), quick=True)
    assert all(each.trace.exists() for each in runs)
