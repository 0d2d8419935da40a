"""What is collected from the volume of a sweep, into which others may write."""

from __future__ import annotations

import json
import os
from pathlib import Path

from stromboli.cli.sweep.cluster_volume import collect
from stromboli.cli.sweep.sweep_progress import failure_text
from stromboli.simulator.sweeps.results_folder import MOST_FAILURE_BYTES, ResultsFolder
from tests.simulator.sweeps.grids import plan_in

RECORD = json.dumps({"schema": 1, "jobs": [], "summary": {"jobs": 0}})
FAILURE = {"id": "../../elsewhere", "title": "\x1b[31mred", "command": "none", "outcome": "exit status 3"}


def test_whole_records_and_failures_are_collected_and_nothing_else(tmp_path: Path) -> None:
    plan = plan_in(tmp_path, "options: {swf: a.swf}\naxes: {seed: 1..4}")
    good, failed, endless, waiting = (run.id for run in plan.runs)
    there, here = ResultsFolder(tmp_path / "volume"), ResultsFolder(tmp_path / "here")
    with there.locked(), here.locked():
        there.record(good).write_text(RECORD)
        there.failure(failed).write_text(json.dumps(FAILURE))
        there.failure(endless).write_text(json.dumps({**FAILURE, "outcome": "x" * MOST_FAILURE_BYTES}))
        os.mkfifo(there.record(waiting))
        collect(plan, there.path, here)
    assert here.record(good).read_text() == RECORD
    told = here.failed(failed)
    assert told is not None
    assert (told.id, told.outcome) == (failed, "exit status 3")
    assert "\x1b" not in failure_text(told)
    kept = {path.name for path in here.path.rglob("*.json")}
    assert kept == {f"{good}.json", f"{failed}.json"}
    assert not list(tmp_path.rglob("elsewhere*"))
