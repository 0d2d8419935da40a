"""Plans that travel: with their inputs beside them, checked where they arrive."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from stromboli.simulator.sweeps.grid import BadGrid
from stromboli.simulator.sweeps.input_files import InputFiles
from stromboli.simulator.sweeps.portable_plan import export
from stromboli.simulator.sweeps.sweep_plan import load_plan
from tests.simulator.sweeps.grids import plan_in

GRID = "options: {swf: a.swf, plugins-dir: plugins, nodes: 2x8cpu}\naxes: {seed: 1..2}"


@pytest.fixture
def plan_file(tmp_path: Path) -> Path:
    """A plan with a file and a folder, on another machine."""
    plugins = tmp_path / "here" / "plugins" / "more"
    plugins.mkdir(parents=True)
    (plugins / "mine.py").write_text("A = 1\n")
    exported = export(plan_in(tmp_path / "here", GRID), tmp_path / "exported")
    shutil.rmtree(tmp_path / "here")
    there = tmp_path / "there"
    exported.parent.rename(there)
    return there / exported.name


def test_an_exported_plan_has_the_same_runs_elsewhere(plan_file: Path, tmp_path: Path) -> None:
    plan = load_plan(plan_file, InputFiles())
    assert [run.seed for run in plan.runs] == ["1", "2"]
    trace, plugins, nodes, _ = plan.runs[0].arguments
    assert Path(trace.value or "") == plan_file.parent / trace.sha256[:12] / "a.swf"
    assert (Path(plugins.value or "") / "more" / "mine.py").read_text() == "A = 1\n"
    assert nodes.value == "2x8cpu"


def test_inputs_that_changed_or_are_gone_are_told(plan_file: Path) -> None:
    trace = next(plan_file.parent.glob("*/a.swf"))
    trace.write_text("; another")
    with pytest.raises(BadGrid, match="changed since the sweep was planned"):
        load_plan(plan_file, InputFiles())
    trace.unlink()
    with pytest.raises(BadGrid, match="no such file"):
        load_plan(plan_file, InputFiles())


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (b'"seed":"1"', b'"seed":1', "no plan of a sweep"),
        (b'"version":"', b'"version":"9.', "sweep the grid itself again"),
        (b"2x8cpu", b"2x9cpu", "not the digest of its settings"),
        (b'"runs":[', b'"runs":[],"other":[', "0 runs; a sweep has 1 to 10,000"),
    ],
)
def test_a_plan_that_somebody_changed_is_refused(plan_file: Path, old: bytes, new: bytes, said: str) -> None:
    content = plan_file.read_bytes()
    assert old in content
    plan_file.write_bytes(content.replace(old, new))
    with pytest.raises(BadGrid, match=said):
        load_plan(plan_file, InputFiles())


def test_a_plan_with_an_id_that_is_a_path_is_refused(plan_file: Path) -> None:
    run_id = load_plan(plan_file, InputFiles()).runs[0].id
    plan_file.write_bytes(plan_file.read_bytes().replace(run_id.encode(), b"../../../etc/x"))
    with pytest.raises(BadGrid, match="no plan of a sweep"):
        load_plan(plan_file, InputFiles())
