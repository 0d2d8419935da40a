"""`stromboli simulate`: forms and options, what is printed, and how it ends."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from stromboli.cli.main import app
from stromboli.cli.simulate.progress_bar import clock_text
from tests.simulator.traces_at_hand import ROOT

SWF = """\
; MaxProcs: 4
1 0 -1 100 4 -1 -1 4 200 -1 1 1 1 -1 1 1 -1 -1
2 10 -1 50 4 -1 -1 4 50 -1 1 2 1 -1 1 1 -1 -1
3 20 -1 300 2 -1 -1 2 100 -1 1 1 1 -1 1 1 -1 -1
"""
PROMISED = {"jobs", "utilisation", "mean_wait_s", "mean_bounded_slowdown", "makespan_s"}


@pytest.fixture
def trace(tmp_path: Path) -> str:
    path = tmp_path / "three.swf"
    path.write_text(SWF)
    return str(path)


def simulate(*arguments: str, status: int = 0) -> str:
    shown = CliRunner().invoke(app, ["simulate", *arguments], catch_exceptions=False)
    assert shown.exit_code == status, shown.output
    return shown.output if status == 2 else shown.stdout


def measures(*arguments: str, status: int = 0) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(simulate(*arguments, "-o", "json", status=status))
    return found


@pytest.mark.parametrize("backfill", ["easy", "conservative", "none"])
def test_a_trace_gives_the_promised_measures(trace: str, backfill: str) -> None:
    found = measures("--swf", trace, "--backfill", backfill)
    assert found.keys() >= PROMISED
    assert found["jobs"] == 3
    assert found["makespan_s"] == 250
    assert found["utilisation"] == pytest.approx((400 + 200 + 200) / (4 * 250))
    assert found["mean_wait_s"] == pytest.approx((0 + 90 + 130) / 3)
    assert found["mean_bounded_slowdown"] == pytest.approx((1 + 140 / 50 + 230 / 100) / 3)


def test_runs_are_cut_at_the_estimate_unless_they_may_go_on(trace: str) -> None:
    assert measures("--swf", trace)["makespan_s"] == 250
    assert measures("--swf", trace, "--overrun")["makespan_s"] == 450


def test_on_nodes_of_mine_jobs_are_gangs(trace: str, tmp_path: Path) -> None:
    record = tmp_path / "record.json"
    simulate("--swf", trace, "--nodes", "2x2cpu", "--save", str(record))
    pods = json.loads(record.read_text())["pods"]
    assert {(pod["pod"], pod["node"]) for pod in pods if pod["pod"].startswith("job-1-")} == {
        ("job-1-0", "n1"),
        ("job-1-1", "n2"),
    }


def test_the_same_command_gives_the_same_bytes(trace: str, tmp_path: Path) -> None:
    def run(name: str) -> tuple[str, bytes]:
        path = tmp_path / name
        arguments = ("--nodes", "3x2cpu", "--failures", "5m/1m", "--seed", "4", "--save", str(path))
        shown = measures("--swf", trace, *arguments)
        return json.dumps(shown), path.read_bytes()

    assert run("a.json") == run("b.json")


def test_backfill_is_set_in_a_policy_of_mine(trace: str, tmp_path: Path) -> None:
    policy = tmp_path / "policy.yaml"
    policy.write_text('actions: "allocate"\ntiers:\n- plugins:\n  - name: gang\n  - name: predicates\n')
    short = SWF.replace("; MaxProcs: 4\n1 0 -1 100 4 -1 -1 4", "; MaxProcs: 4\n1 0 -1 100 3 -1 -1 3")
    Path(trace).write_text(short + "4 30 -1 10 1 -1 -1 1 10 -1 1 1 1 -1 1 1 -1 -1\n")
    overtaking = measures("--swf", trace, "--policy", str(policy), "--backfill", "easy")
    strict = measures("--swf", trace, "--policy", str(policy), "--backfill", "none")
    assert overtaking["mean_wait_s"] < strict["mean_wait_s"]


def test_only_the_first_jobs_and_faster(trace: str) -> None:
    assert measures("--swf", trace, "--jobs", "2")["jobs"] == 2
    assert measures("--swf", trace, "--load", "2")["makespan_s"] == 250
    assert measures("--swf", trace, "--load", "0.1")["makespan_s"] == 300


def test_cycles_by_the_period(trace: str) -> None:
    assert measures("--swf", trace, "--cycle", "period", "--period", "60")["makespan_s"] == 120 + 60 + 100


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ([], "nothing to simulate: give one of --swf"),
        (["--swf", "{trace}", "--workload", "w.yaml"], "--swf and --workload exclude each other"),
        (["--swf", "nowhere.swf"], "nowhere.swf"),
        (["--swf", "{trace}", "--failures", "often"], "expected two durations such as 30d/4h"),
        (["--swf", "{trace}", "--failures", "30d/0s"], "expected two durations such as 30d/4h"),
        (["--swf", "{trace}", "--load", "0"], "give a number above 0"),
        (["--swf", "{trace}", "--load", "nan"], "no finite number"),
        (["--swf", "{trace}", "--nodes", "4xlarge"], "--nodes: "),
        (["--swf", "{trace}", "--policy", "a.yaml", "--preset", "basic"], "exclude each other"),
        (["--swf", "{trace}", "--save", "/nowhere/at/all.json"], "there is no folder /nowhere/at"),
        (["--swf", "{trace}", "--csv", "{trace}"], "three.swf: this is a file; give the name of a folder"),
        (
            ["--swf", "{trace}", "--csv", "{trace}/below"],
            "three.swf: this is a file; give the name of a folder",
        ),
        (["--swf", "{trace}", "--plots", "{trace}"], "three.swf: this is a file; give the name of a folder"),
        (["--swf", "{trace}", "--score", "fgd", "--now", "x"], "--score, --now: without effect on --swf"),
        (["--openb-pods", "p.csv"], "--openb-nodes: a list of nodes and a list of pods go together"),
        (["--openb-pods", "p", "--nodes", "2x4cpu"], "--nodes: without effect on --openb-nodes with"),
        (["--openb-pods", "p", "--backfill", "easy"], "--backfill: with --score, which is fgd unless given"),
        (
            ["--swf", "{trace}", "--period", "60"],
            "--period 60: without effect on --cycle event; give --cycle",
        ),
        (["-f", "cluster.yaml", "--load", "2"], "--load: without effect on -f; leave it out"),
        (["-f", "cluster.yaml", "--assume-run-time", "soon"], "no time; write it as 2h or 1h30m"),
        (["--swf", "{trace}", "--assume-run-time", "2h"], "--assume-run-time: without effect on --swf"),
    ],
)
def test_what_is_wrong_is_told_with_the_way_out(trace: str, arguments: list[str], problem: str) -> None:
    assert problem in simulate(*(part.format(trace=trace) for part in arguments), status=2)


def test_the_files_that_were_written_are_named_unless_it_is_to_be_quiet(trace: str, tmp_path: Path) -> None:
    files = [str(tmp_path / name) for name in ("run.json", "tables", "page.html")]
    command = ["simulate", "--swf", trace, "--save", files[0], "--csv", files[1], "--report", files[2]]
    shown = CliRunner().invoke(app, command)
    assert shown.stderr == "".join(f"written: {file}\n" for file in files)
    assert CliRunner().invoke(app, [*command, "-q"]).stderr == ""


def test_notes_are_in_the_document_and_no_warnings(trace: str) -> None:
    shown = CliRunner().invoke(app, ["simulate", "--swf", trace, "-o", "json"])
    note = "1 of 3 jobs is cut at its requested time; --overrun lets it run on"
    assert json.loads(shown.stdout)["notes"] == [note]
    assert shown.stderr == f"note: {note}\n"


def test_jobs_of_a_cluster_without_a_time_limit_end_as_assumed(tmp_path: Path) -> None:
    saved, cluster = tmp_path / "run.json", str(ROOT / "examples" / "cluster.yaml")
    endless = measures("-f", cluster)
    assert endless["finished"] == 0
    assumed = measures("-f", cluster, "--assume-run-time", "2h", "--save", str(saved))
    assert assumed["finished"] == assumed["jobs"]
    assert assumed["makespan_s"] >= 7200
    assert json.loads(saved.read_text())["settings"]["assume_run_time"] == "2h"


def plugin(folder: Path, body: str) -> list[str]:
    """A plugin of the user's that does something when a session opens, and a policy with it."""
    (folder / "plugins").mkdir()
    (folder / "plugins" / "mine.py").write_text(
        "from stromboli.engine.plugin import Plugin\n\n\n"
        "class Mine(Plugin):\n"
        '    """Looks at a session."""\n\n    name = "mine"\n\n'
        "    def opening(self, session, dirty):\n"
        f"        {body}\n"
    )
    policy = folder / "mine.yaml"
    policy.write_text('actions: "allocate"\ntiers:\n- plugins:\n  - name: gang\n  - name: mine\n')
    return ["--policy", str(policy), "--plugins-dir", str(folder / "plugins")]


def test_an_interrupt_shows_what_happened_until_then(trace: str, tmp_path: Path) -> None:
    own = plugin(
        tmp_path,
        "if session.cluster.memory.setdefault('n', 0) > 2: raise KeyboardInterrupt\n"
        "        session.cluster.memory['n'] += 1",
    )
    found = measures("--swf", trace, *own, status=130)
    assert found["partial"] is True
    assert found["jobs"] == 3


CTRL_C_AS_AN_OBJECT_GOES = """\
if session.cluster.memory.setdefault('n', 0) == 2:
            import os, signal, weakref
            gone = type('Gone', (), {})()
            reference = weakref.ref(gone, lambda _: os.kill(os.getpid(), signal.SIGINT))
            del gone
        session.cluster.memory['n'] += 1
"""


def test_an_interrupt_counts_wherever_the_program_is(trace: str, tmp_path: Path) -> None:
    found = measures("--swf", trace, *plugin(tmp_path, CTRL_C_AS_AN_OBJECT_GOES), status=130)
    assert (found["partial"], found["jobs"]) == (True, 3)
    assert found["finished"] < 3


def test_a_plugin_that_fails_in_every_cycle_ends_the_run_early(trace: str, tmp_path: Path) -> None:
    lines = "".join(f"{n} {n} -1 10 1 -1 -1 1 10 -1 1 1 1 -1 1 1 -1 -1\n" for n in range(1, 40))
    Path(trace).write_text("; MaxProcs: 4\n" + lines)
    shown = CliRunner().invoke(
        app, ["simulate", "--swf", trace, *plugin(tmp_path, "raise RuntimeError('no')"), "-o", "json"]
    )
    assert shown.exit_code == 1
    assert "10 cycles in a row came to nothing" in shown.stderr
    assert "warning: the cycle is lost: " in shown.stderr


def test_what_a_plugin_prints_does_not_spoil_the_output(trace: str, tmp_path: Path) -> None:
    assert measures("--swf", trace, *plugin(tmp_path, "print('hello')"))["jobs"] == 3


def test_virtual_time_is_shown_as_people_read_it() -> None:
    assert clock_text(3 * 86_400 + 4 * 3_600 + 5 * 60 + 6.7) == "3d 04:05:06"
