"""Runs as processes: whole results only, failures told and not in the way, what is there not run again."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from stromboli.simulator.sweeps.planned_run import PlannedRun
from stromboli.simulator.sweeps.results_folder import (
    ATTEMPTS,
    BEGUN,
    FailedRun,
    FolderInUse,
    ResultsFolder,
    UnusableFolder,
)
from stromboli.simulator.sweeps.run_processes import RunProcesses
from stromboli.simulator.sweeps.sweep_plan import Share, SweepPlan
from stromboli.simulator.sweeps.sweep_summary import configuration_results, sweep_records
from tests.simulator.sweeps.fake_simulate import PROGRAM
from tests.simulator.sweeps.grids import plan_in

SEEDS = "options: {swf: a.swf}\naxes: {seed: 1..4}"
TROUBLE = "options: {swf: a.swf}\naxes: {failures: [null, 1d/1h, 2d/1h, 4d/1h]}"


class Notes:
    """Notes what a sweep tells."""

    def __init__(self) -> None:
        self.titles: list[str] = []
        self.failures: list[FailedRun] = []
        self.most_at_once = 0
        self.running = 0

    def started(self, run: PlannedRun) -> None:
        self.running += 1
        self.most_at_once = max(self.most_at_once, self.running)

    def done(self, run: PlannedRun, seconds: float) -> None:
        self.running -= 1
        self.titles.append(run.title)

    def failed(self, failed: FailedRun) -> None:
        self.running -= 1
        self.failures.append(failed)

    def tick(self) -> None:
        pass


def run_missing(
    plan: SweepPlan, folder: ResultsFolder, jobs: int = 2, program: Sequence[str] = PROGRAM, pod: str = ""
) -> Notes:
    notes = Notes()
    with folder.locked():
        missing = [run for run in plan.distinct.values() if not folder.is_done(run.id)]
        RunProcesses(folder, jobs, notes, program, pod).run_all(missing)
    return notes


def files(folder: ResultsFolder) -> set[str]:
    return {str(path.relative_to(folder.path)) for path in folder.path.rglob("*") if path.is_file()}


def test_every_run_leaves_a_record_and_is_not_run_again(tmp_path: Path) -> None:
    plan, folder = plan_in(tmp_path, SEEDS), ResultsFolder(tmp_path / "results")
    notes = run_missing(plan, folder)
    assert sorted(notes.titles) == [f"seed={seed}" for seed in (1, 2, 3, 4)]
    assert notes.most_at_once == 2
    assert {json.loads(folder.record(run.id).read_text())["seed"] for run in plan.runs} == {1, 2, 3, 4}
    assert files(folder) == {"sweep.lock"} | {f"records/{run.id}.json" for run in plan.runs}
    folder.record(plan.runs[1].id).write_text('{"schema": 1, "jobs": [')  # a disk was full
    folder.record(plan.runs[2].id).write_text('{"schema": 1, "jobs": [], "summary": {}, "partial": true}')
    assert sorted(run_missing(plan, folder).titles) == ["seed=2", "seed=3"]


def test_a_run_that_fails_is_told_with_command_and_last_lines_and_stops_nobody(tmp_path: Path) -> None:
    plan, folder = plan_in(tmp_path, TROUBLE), ResultsFolder(tmp_path / "results")
    notes = run_missing(plan, folder)
    assert notes.titles == ["failures=default"]
    failed = {failure.title: failure for failure in notes.failures}
    exited = failed["failures=1d/1h"]
    assert (exited.outcome, exited.last_lines) == ("exit status 3", ("first line", "the disk is full"))
    assert exited.command.endswith(f"--save {folder.record(exited.id)}")
    assert exited.command.startswith("stromboli simulate --swf ")
    assert failed["failures=2d/1h"].outcome == "killed by SIGKILL, perhaps for want of memory"
    assert failed["failures=4d/1h"].outcome == "ended without a whole record"
    assert folder.failed(exited.id) == exited
    assert not any(path.startswith("unfinished") for path in files(folder))


def test_a_program_that_is_not_there_fails_every_run(tmp_path: Path) -> None:
    plan, folder = plan_in(tmp_path, SEEDS), ResultsFolder(tmp_path / "results")
    notes = run_missing(plan, folder, program=[str(tmp_path / "none")])
    assert len(notes.failures) == 4
    assert notes.failures[0].outcome.startswith("cannot be started: ")


def test_an_interruption_ends_the_runs_and_leaves_whole_results_alone(tmp_path: Path) -> None:
    text = "options: {swf: a.swf}\naxes: {failures: [null, 3d/1h]}"
    plan, folder = plan_in(tmp_path, text), ResultsFolder(tmp_path / "results")

    class Interrupted(Notes):
        def tick(self) -> None:
            if self.titles:
                raise KeyboardInterrupt

    with folder.locked(), pytest.raises(KeyboardInterrupt):
        RunProcesses(folder, 2, Interrupted(), PROGRAM).run_all(plan.runs)
    assert files(folder) == {"sweep.lock", f"records/{plan.runs[0].id}.json"}


def test_a_second_sweep_in_the_same_folder_is_kept_out_and_shares_are_not(tmp_path: Path) -> None:
    folder, other = ResultsFolder(tmp_path / "results"), ResultsFolder(tmp_path / "results")
    said = f"process {os.getpid()} sweeps in this folder"
    with folder.locked(), pytest.raises(FolderInUse, match=said), other.locked(shared=True):
        pass
    unnamed = pytest.raises(FolderInUse, match="another process sweeps in this folder")
    with folder.locked(shared=True), other.locked(shared=True), unnamed, folder.locked():
        pass


def test_what_a_killed_sweep_left_is_removed_by_the_next(tmp_path: Path) -> None:
    folder = ResultsFolder(tmp_path / "results")
    with folder.locked():
        (folder.unfinished / "half.json").write_text("{")
    with folder.locked():
        assert list(folder.unfinished.iterdir()) == []


def test_a_folder_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    folder = ResultsFolder(tmp_path / "file")
    with pytest.raises(UnusableFolder, match="--results names another folder"), folder.locked():
        pass


def test_shares_are_disjoint_and_together_everything(tmp_path: Path) -> None:
    runs = plan_in(tmp_path, "options: {swf: a.swf}\naxes: {seed: 1..7}").runs
    parts = [Share(index, 3).of(runs) for index in range(3)]
    assert sorted(len(part) for part in parts) == [2, 2, 3]
    assert {run.id for part in parts for run in part} == {run.id for run in runs}


def test_means_are_taken_over_seeds_for_each_configuration(tmp_path: Path) -> None:
    text = "options: {swf: a.swf}\naxes: {load: [1, 2], seed: [1, 3]}"
    plan, folder = plan_in(tmp_path, text), ResultsFolder(tmp_path / "results")
    run_missing(plan, folder)
    folder.record(plan.runs[3].id).unlink()
    one, two = configuration_results(plan, folder)
    assert one.configuration == {"load": "1"}
    assert one.mean == {"jobs": 10, "utilisation": pytest.approx(0.52)}
    assert one.deviation["utilisation"] == pytest.approx(0.01 * 2**0.5)
    assert (two.planned, len(two.records), two.mean) == (2, 1, {"jobs": 10, "utilisation": 0.51})


def test_records_are_named_by_the_axes_on_which_configurations_differ(tmp_path: Path) -> None:
    text = "options: {swf: a.swf}\naxes: {load: [1, 2], jobs: [5], backfill: [none, easy]}"
    plan, folder = plan_in(tmp_path, text), ResultsFolder(tmp_path / "results")
    with folder.locked():
        folder.save_plan(plan)
    assert list(sweep_records(folder.path)) == []
    run_missing(plan, folder)
    named = {name: path.stem for name, path in sweep_records(folder.path)}
    assert list(named) == [f"load={load} backfill={mode}" for load in (1, 2) for mode in ("none", "easy")]
    assert list(named.values()) == [run.id for run in plan.runs]


def test_in_a_pod_what_failed_is_not_tried_again_and_what_was_killed_with_it_three_times(
    tmp_path: Path,
) -> None:
    plan, folder = plan_in(tmp_path, TROUBLE), ResultsFolder(tmp_path / "results")
    run_missing(plan, folder, pod="uid-1")
    exited = plan.runs[1]
    given_up = folder.given_up(exited, "uid-1")
    assert given_up is not None
    assert given_up.outcome == "exit status 3"
    assert folder.given_up(exited, "uid-2") is None  # another pod tries it
    assert folder.given_up(plan.runs[0], "uid-1") is None
    for attempt in range(1, ATTEMPTS + 1):
        assert folder.given_up(plan.runs[0], "uid-1") is None
        folder.begin(plan.runs[0], "command", "uid-1")
        begun = folder.failed(plan.runs[0].id)
        assert begun is not None
        assert (begun.outcome, begun.attempts) == (BEGUN, attempt)
    lost = folder.given_up(plan.runs[0], "uid-1")
    assert lost is not None
    assert lost.outcome == "killed with its pod 3 times, perhaps for want of memory"


def test_a_sweep_that_is_killed_goes_on_where_it_was(tmp_path: Path) -> None:
    """The whole process is killed with SIGKILL: nothing half is taken for a result."""
    plan, folder = (
        plan_in(tmp_path, "options: {swf: a.swf}\naxes: {failures: [null, 3d/1h]}"),
        tmp_path / "results",
    )
    (tmp_path / "sweep.json").write_bytes(plan.encoded())
    script = f"""
import os, signal
from pathlib import Path
from stromboli.simulator.sweeps.input_files import InputFiles
from stromboli.simulator.sweeps.results_folder import ResultsFolder
from stromboli.simulator.sweeps.run_processes import RunProcesses
from stromboli.simulator.sweeps.sweep_plan import load_plan
class Observer:
    def started(self, run): pass
    def failed(self, failed): pass
    def tick(self): pass
    def done(self, run, seconds):
        for process in processes._running:
            os.killpg(process.process.pid, signal.SIGKILL)
        os.kill(os.getpid(), signal.SIGKILL)
folder = ResultsFolder(Path({str(folder)!r}))
with folder.locked():
    processes = RunProcesses(folder, 2, Observer(), {PROGRAM!r})
    processes.run_all(load_plan(Path({str(tmp_path / "sweep.json")!r}), InputFiles()).runs)
"""
    killed = subprocess.run([sys.executable, "-c", script], timeout=60, check=False)
    assert killed.returncode == -signal.SIGKILL
    results = ResultsFolder(folder)
    assert [results.is_done(run.id) for run in plan.runs] == [True, False]
    with results.locked():
        assert list(results.unfinished.iterdir()) == []
