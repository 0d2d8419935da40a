"""`stromboli sweep` on this machine: commands, results, resume, and what is told on the way."""

from __future__ import annotations

import io
import itertools
import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml
from rich.console import Console
from typer.testing import CliRunner, Result

from stromboli.cli.cli_errors import INTERRUPTED
from stromboli.cli.main import app
from stromboli.cli.output import Format
from stromboli.cli.sweep import sweep_progress
from stromboli.cli.sweep.local_sweep import planned, run_here
from stromboli.cli.sweep.sweep_options import SweepOptions
from stromboli.cli.sweep.sweep_progress import Counts, SweepProgress, counts_in
from stromboli.simulator.sweeps.results_folder import FailedRun, ResultsFolder
from stromboli.simulator.sweeps.sweep_plan import Share
from tests.embedded.up_process import eventually
from tests.simulator.sweeps.fake_simulate import PROGRAM

TRACE = """; MaxProcs: 4
1 0 -1 100 3 -1 -1 3 100 -1 1 1 1 1 1 1 -1 -1
2 1 -1 100 4 -1 -1 4 100 -1 1 1 1 1 1 1 -1 -1
3 2 -1 50 1 -1 -1 1 50 -1 1 1 1 1 1 1 -1 -1
"""
GRID = "options: {swf: a.swf}\naxes: {backfill: [none, easy]}\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where we are: a trace in which the third job may overtake the second, and a grid."""
    (tmp_path / "a.swf").write_text(TRACE)
    (tmp_path / "study.yaml").write_text(GRID)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def sweep(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["sweep", *arguments], catch_exceptions=False)


def options(grid: str = "study.yaml", share: Share | None = None, pod: str = "") -> SweepOptions:
    return SweepOptions(Path(grid), None, 2, False, share, None, False, Format.TABLE, pod)


def run_fake(given: SweepOptions) -> int:
    """The sweep with a program in the place of the simulator."""
    return run_here(planned(given), given, PROGRAM)


def test_a_sweep_runs_the_simulator_and_its_table_has_the_means(folder: Path) -> None:
    result = sweep("study.yaml", "-o", "json")
    assert result.exit_code == 0, result.output
    shown = json.loads(result.stdout)
    none, easy = shown["configurations"]
    assert (shown["runs"], shown["done"], shown["failed"]) == (2, 2, [])
    assert (none["configuration"], none["mean"]["makespan_s"]) == ({"backfill": "none"}, 250)
    assert easy["mean"]["makespan_s"] == 200  # the third job runs beside the first
    assert result.stderr.startswith("study: 2 runs, ")
    again = sweep("study.yaml")  # nothing is left to do, so this is quick
    assert again.exit_code == 0
    assert "[2/2] done already" in again.stderr
    assert [line.split()[:3] for line in again.stdout.splitlines()[1:3]] == [
        ["none", "1", "3"],
        ["easy", "1", "3"],
    ]
    assert "compare: stromboli compare study-results\n" in again.stdout
    assert easy["records"] == [f"study-results/records/{Path(easy['records'][0]).name}"]
    compared = CliRunner().invoke(app, ["compare", "study-results", "-o", "json"], catch_exceptions=False)
    assert [entry["name"] for entry in json.loads(compared.stdout)["configurations"]] == ["none", "easy"]


def test_the_printed_command_of_a_run_makes_its_record(folder: Path) -> None:
    line = sweep("study.yaml", "--dry-run").stdout.splitlines()[1]
    assert line.startswith(
        "stromboli simulate --swf a.swf --backfill easy --no-progress --save study-results/"
    )
    entries = json.loads(sweep("study.yaml", "--dry-run", "-o", "json").stdout)["runs"]
    assert [(entry["command"] == line, entry["done"]) for entry in entries] == [(False, False), (True, False)]
    assert not (folder / "study-results").exists()
    Path("study-results/records").mkdir(parents=True)
    by_hand = CliRunner().invoke(app, line.split()[1:], catch_exceptions=False)
    assert by_hand.exit_code == 0, by_hand.output
    entries = json.loads(sweep("study.yaml", "--dry-run", "-o", "json").stdout)["runs"]
    assert [entry["done"] for entry in entries] == [False, True]


def test_failures_are_told_and_tried_again_by_the_same_command(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("study.yaml").write_text("options: {swf: a.swf}\naxes: {failures: [null, 1d/1h], seed: 1..2}")
    assert run_fake(options()) == 1
    told = capsys.readouterr()
    assert "error: failures=1d/1h seed=1: exit status 3\n  stromboli simulate --swf " in told.err
    assert "  | the disk is full\n" in told.err
    assert "runs failed: 2; the same command tries again, and only what failed" in told.err
    assert "[4/4, 2 failed]" in told.err
    assert [line.split()[:4] for line in told.out.splitlines()[1:3]] == [
        ["default", "2", "10", "51.5"],
        ["1d/1h", "0", "of", "2"],
    ]
    assert run_fake(options()) == 1
    assert "[2/4] done already" in capsys.readouterr().err


def test_seeds_that_change_nothing_are_no_sample(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("study.yaml").write_text("options: {swf: a.swf}\naxes: {sequence: [ours, go], seed: 1..2}")
    assert run_fake(options()) == 0
    assert "runs are all the same" not in capsys.readouterr().err
    for seed, record in enumerate(Path("study-results/records").iterdir()):
        summary = {"seed": seed, "jobs": 3, "utilisation": 0.1}
        record.write_text(json.dumps({"schema": 1, "jobs": [], "summary": summary}))
    assert run_fake(options()) == 0
    assert "warning: configurations whose runs are all the same: 2 of 2." in capsys.readouterr().err


def test_a_changed_input_is_another_run(folder: Path) -> None:
    assert run_fake(options()) == 0
    Path("a.swf").write_text(TRACE.replace("100 3", "100 2"))
    assert run_fake(options()) == 0
    assert len(list(Path("study-results/records").iterdir())) == 4


def test_a_plan_is_exported_divided_and_brought_together(folder: Path) -> None:
    result = sweep("study.yaml", "--export", "elsewhere")
    assert "elsewhere/sweep.json: 2 runs" in result.stdout
    Path("a.swf").unlink()
    for index in range(2):
        assert run_fake(options("elsewhere/sweep.json", Share(index, 2))) == 0
    assert len(list(Path("elsewhere/records").iterdir())) == 2
    assert run_fake(options("elsewhere/sweep.json")) == 0


def test_in_a_pod_failures_end_well_and_are_not_tried_again(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("study.yaml").write_text("options: {swf: a.swf}\naxes: {failures: [null, 1d/1h]}")
    assert run_fake(options(share=Share(), pod="uid")) == 0
    assert counts_in(capsys.readouterr().err) == Counts(2, 1, 0, 1)
    assert run_fake(options(share=Share(), pod="uid")) == 0
    assert capsys.readouterr().err == "[2/2, 1 failed] done already\n"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_sweep_keeps_what_is_whole_and_says_how_to_go_on(folder: Path, number: int) -> None:
    Path("study.yaml").write_text("options: {swf: a.swf}\naxes: {failures: [null, 3d/1h]}")
    script = (
        "import sys; from tests.cli.sweep.test_sweep import options, run_fake; sys.exit(run_fake(options()))"
    )
    root = Path(__file__).parents[3]
    process = subprocess.Popen(
        [sys.executable, "-c", script],
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": str(root)},
        start_new_session=True,
    )
    eventually(lambda: any(folder.glob("study-results/records/*.json")), 60)
    process.send_signal(number)
    _, told = process.communicate(timeout=30)
    assert process.returncode == INTERRUPTED
    assert "interrupted: 1 of 2 runs are done and kept in study-results; the same command goes on" in told
    assert list((folder / "study-results" / "unfinished").iterdir()) == []


def test_wrong_usage_is_told_before_anything_runs(folder: Path) -> None:
    Path("study.yaml").write_text("options: {swf: a.swf, lod: 1}")
    result = sweep("study.yaml")
    assert (result.exit_code, 'did you mean "load"?' in result.stderr) == (2, True)
    assert not Path("study-results").exists()
    Path("study.yaml").write_text(GRID)
    assert "is no share; write INDEX/COUNT" in sweep("study.yaml", "--share", "2/2").stderr
    with ResultsFolder(Path("study-results")).locked():
        taken = sweep("study.yaml")
    assert (taken.exit_code, f"process {os.getpid()} sweeps in this folder" in taken.stderr) == (2, True)


def test_manifests_for_a_cluster_are_printed_without_one(folder: Path) -> None:
    result = sweep("study.yaml", "--on-cluster", "--claim", "c", "--queue", "lab", "--dry-run", "-o", "yaml")
    inputs, job = yaml.safe_load_all(result.stdout)
    assert inputs["data"]["input-0"] == TRACE
    spec = job["spec"]
    assert (spec["queue"], spec["minAvailable"], spec["tasks"][0]["replicas"]) == ("lab", 1, 2)
    container = spec["tasks"][0]["template"]["spec"]["containers"][0]
    assert container["args"][:2] == ["--share", "$(VC_TASK_INDEX)/2"]
    assert container["resources"] == {"requests": {"cpu": "1", "memory": "2Gi"}}
    kinds = [
        item["kind"]
        for item in json.loads(
            sweep("study.yaml", "--on-cluster", "--claim", "c", "--dry-run", "-o", "json").stdout
        )["items"]
    ]
    assert kinds == ["ConfigMap", "Job"]


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ([], "--on-cluster needs --claim NAME"),
        (["--claim", "c", "--requests", "cpu"], "--requests cpu: no resource with an amount"),
        (["--claim", "c", "--requests", "cpu=x"], "--requests cpu=x: no resource with an amount"),
        (["--claim", "c", "--share", "0/2"], "--share and --on-cluster exclude each other"),
    ],
)
def test_a_sweep_on_a_cluster_needs_usable_options(folder: Path, more: list[str], said: str) -> None:
    result = sweep("study.yaml", "--on-cluster", "--dry-run", *more)
    assert (result.exit_code, said in result.stderr) == (2, True)


def test_inputs_that_no_config_map_holds_have_to_lie_in_the_volume(folder: Path) -> None:
    Path("a.swf").write_text(TRACE + "; more\n" * 150_000)
    on_cluster = ("study.yaml", "--on-cluster", "--claim", "c", "--dry-run")
    refused = sweep(*on_cluster)
    assert refused.exit_code == 2
    assert (
        "bytes, and a ConfigMap holds 1,000,000: name the folder where the volume of claim c"
        in refused.stderr
    )
    job = yaml.safe_load(sweep(*on_cluster, "--exported").stdout)
    command = job["spec"]["tasks"][0]["template"]["spec"]["containers"][0]["command"]
    assert command[2] == f"/stromboli-results/study/plans/{job['metadata']['name']}/sweep.json"


# -- progress


def test_a_terminal_shows_a_bar_with_runs_failures_and_the_time_left(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = io.StringIO()
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    terminal = Console(file=screen, force_terminal=True, width=100, highlight=False)
    monkeypatch.setattr(sweep_progress, "Console", lambda **_: terminal)
    clock = itertools.count(0.0, 60.0)
    monkeypatch.setattr(sweep_progress, "time", SimpleNamespace(monotonic=lambda: next(clock)))
    progress = SweepProgress(Counts(10, 4))
    with progress.shown():
        progress.show(Counts(10, 5, 2, 1))
        progress.failed(FailedRun("id", "seed=1", "stromboli simulate", "exit status 3", ("no room",)))
        progress.tick()
    shown = screen.getvalue()
    assert "7/10 runs · 1 running · 2 failed · " in shown
    assert re.search(r" · \dm left", shown)
    assert "error: seed=1: exit status 3" in shown


def test_counts_are_read_from_the_last_line_that_has_them() -> None:
    assert counts_in(
        "[1/3] a: done in 1 s\n[2/3, 1 failed] b: failed: x\nerror: b\n  | [9/9] no\n"
    ) == Counts(3, 1, 0, 1)
    assert counts_in("nothing yet") is None
