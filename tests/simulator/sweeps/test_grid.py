"""Grids: what they combine, what they leave out, and how a wrong one is refused."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from stromboli.simulator.sweeps.grid import BadGrid
from stromboli.simulator.sweeps.grid_reading import grid_of, read_grid
from stromboli.simulator.sweeps.planned_run import command
from tests.simulator.sweeps.grids import VOCABULARY, grid_in, plan_in

STUDY = """
name: study
options: {swf: a.swf, overrun: true}
axes:
  backfill: [none, easy]
  load: [0.8, 1.0, 1.2]
  seed: 1..3
exclude:
- {backfill: none, load: [1.0, 1.2]}
"""


def problems(folder: Path, text: str) -> str:
    with pytest.raises(BadGrid) as refused:
        plan_in(folder, text)
    return str(refused.value)


def test_a_grid_is_every_combination_that_is_not_left_out(tmp_path: Path) -> None:
    plan = plan_in(tmp_path, STUDY)
    assert plan.name == "study"
    assert len(plan.runs) == len(plan.distinct) == 2 * 3 * 3 - 2 * 3
    assert [run.seed for run in plan.runs[:3]] == ["1", "2", "3"]
    assert plan.runs[0].configuration == {"backfill": "none", "load": "0.8"}
    assert {run.configuration["load"] for run in plan.runs if run.configuration["backfill"] == "none"} == {
        "0.8"
    }


def test_a_run_is_a_command_of_its_own(tmp_path: Path) -> None:
    run = plan_in(tmp_path, STUDY).runs[-1]
    words = ["stromboli", "simulate", "--swf", str(tmp_path / "a.swf"), "--overrun"]
    words += ["--backfill", "easy", "--load", "1.2", "--seed", "3"]
    assert command(run, Path("r.json")) == [*words, "--no-progress", "--save", "r.json"]
    assert run.title == "backfill=easy load=1.2 seed=3"


def test_variants_set_several_options_at_once_and_go_before_those_of_all_runs(tmp_path: Path) -> None:
    (tmp_path / "b.swf").write_text("; another\n")
    text = """
options: {load: 1.5, lenient-policy: false}
axes:
  trace:
    small: {swf: a.swf, load: null}
    large: {swf: b.swf, nodes: [2x8cpu, 1x4cpu]}
"""
    small, large = plan_in(tmp_path, text).runs
    assert small.configuration == {"trace": "small"}
    assert [part.flag for part in small.arguments] == ["--no-lenient-policy", "--swf"]
    assert [part.value for part in large.arguments if part.flag == "--nodes"] == ["2x8cpu", "1x4cpu"]
    assert ("--load", "1.5") in [(part.flag, part.value) for part in large.arguments]


def test_the_id_of_a_run_follows_the_contents_of_its_files_and_not_their_places(tmp_path: Path) -> None:
    text = "options: {swf: a.swf, seed: 4}"
    before = plan_in(tmp_path, text).runs[0].id
    other = tmp_path / "elsewhere"
    other.mkdir()
    (other / "a.swf").write_text("; a trace\n")
    assert plan_in(other, text).runs[0].id == before
    (other / "a.swf").write_text("; a changed trace\n")
    assert plan_in(other, text).runs[0].id != before
    assert plan_in(tmp_path, text.replace("4", "5")).runs[0].id != before


def test_a_folder_is_an_input_with_all_its_files(tmp_path: Path) -> None:
    plugins = tmp_path / "plugins"
    plugins.mkdir()
    (plugins / "mine.py").write_text("A = 1\n")
    text = "options: {swf: a.swf, plugins-dir: plugins}"
    before = plan_in(tmp_path, text).runs[0].id
    assert plan_in(tmp_path, text).runs[0].id == before
    (plugins / "mine.py").write_text("A = 2\n")
    assert plan_in(tmp_path, text).runs[0].id != before


def test_nodes_are_a_notation_or_a_file(tmp_path: Path) -> None:
    (tmp_path / "nodes.yaml").write_text("{}\n")
    runs = plan_in(tmp_path, "options: {swf: a.swf}\naxes: {nodes: [nodes.yaml, 4x8cpu]}").runs
    file, notation = (run.arguments[-1] for run in runs)
    assert (file.value, bool(file.sha256)) == (str(tmp_path / "nodes.yaml"), True)
    assert (notation.value, notation.sha256) == ("4x8cpu", "")


def test_combinations_that_come_to_the_same_are_run_once_and_shown_twice(tmp_path: Path) -> None:
    plan = plan_in(
        tmp_path, "options: {swf: a.swf, load: 1}\naxes: {load: [null, 1.5], kind: {a: {}, b: {}}}"
    )
    assert (len(plan.runs), len(plan.distinct)) == (4, 2)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("axis: {}", 'grid.yaml:1: axis: not a key of a grid; did you mean "axes"?'),
        ("options: {swf: a.swf, lod: 2}", '"lod" is no option of `stromboli simulate`; did you mean "load"?'),
        ("options: {swf: a.swf, save: x}", '"save" cannot be set in a grid: the sweep sets it itself'),
        ("options: {swf: a.swf, load: fast}", "options.load: \"fast\": 'fast' is not a valid float"),
        ("options: {swf: a.swf, load: -1}", "options.load: -1: -1.0 is not in the range x>=0.0"),
        ("options: {swf: a.swf, load: .nan}", "no finite number"),
        ("options: {swf: a.swf, load: [1, 2]}", "options.load: takes one value; several belong under axes"),
        ("options: {swf: a.swf, overrun: 1}", "options.overrun: needs true or false, got 1"),
        ("options: {swf: a.swf, seed: true}", "options.seed: needs a number or a text, got True"),
        ("options: {swf: b.swf}", 'swf: "b.swf": '),
        ("options: {seed: 1}", "no workload: set one of swf, openb-pods"),
        ("options: {swf: a.swf}\naxes: {backfill: [esay]}", "axes.backfill: \"esay\": 'esay' is not one of"),
        ("options: {swf: a.swf}\naxes: {seed: 3}", "needs a list, a range such as 1..30 or variants, got 3"),
        ("options: {swf: a.swf}\naxes: {seed: 3..1}", "axes.seed: 3..1: a range has 1 to 10,000 numbers"),
        ("options: {swf: a.swf}\naxes: {seed: [1, 1]}", 'axes.seed: "1" stands there twice'),
        ("options: {swf: a.swf}\naxes: {seed: []}", "axes.seed: has no values"),
        ("options: {swf: a.swf}\naxes: {a: {b c: {}}}", '"b c" is no name of a variant'),
        (
            "options: {swf: a.swf}\naxes: {load: [1], a: {b: {load: 2}}}",
            "axes.a: sets load, as axis load does; leave it to one of them",
        ),
        ("options: {swf: a.swf}\naxes: {seed: [1]}\nexclude: [{sed: 1}]", 'did you mean "seed"?'),
        (
            "options: {swf: a.swf}\naxes: {seed: [1]}\nexclude: [{seed: 2}]",
            "2 is no value of the axis; known: 1",
        ),
        ("options: {swf: a.swf}\naxes: {seed: [1]}\nexclude: [{}]", "would leave out everything"),
        ("options: {swf: a.swf}\naxes: {seed: [1]}\nexclude: [{seed: 1}]", "leaves out every combination"),
        (
            "options: {swf: a.swf}\naxes: {seed: 1..1000, load: [1, 2, 3], jobs: [1, 2, 3, 4]}",
            "12,000 combinations (seed 1000 x load 3 x jobs 4), and a sweep has 10,000 at most: divide it",
        ),
        ("name: a b\noptions: {swf: a.swf}", '"a b" is no name'),
        ("- 1", "a grid has the keys name, options, axes and exclude"),
        ("", "a grid has the keys name, options, axes and exclude"),
        ("a: [", "this is not YAML"),
        ("options: {swf: a.swf, swf: a.swf}", '"swf" stands here twice'),
    ],
)
def test_a_wrong_grid_is_refused_with_field_value_and_way_out(tmp_path: Path, text: str, said: str) -> None:
    assert said in problems(tmp_path, text)


def test_all_problems_are_told_at_once(tmp_path: Path) -> None:
    assert len(problems(tmp_path, "x: 1\ny: 2\noptions: {z: 3}").splitlines()) == 3
    missing = problems(tmp_path, "options: {swf: none.swf, policy: none.yaml}\naxes: {seed: 1..3}")
    assert [line.split(": ")[1] for line in missing.splitlines()] == ["swf", "policy"]


def test_a_name_that_is_too_long_for_a_file_is_no_file(tmp_path: Path) -> None:
    assert "File name too long" in problems(tmp_path, f"options: {{swf: {'a' * 300}}}")
    notation = f"{'1x8cpu,32Gi;' * 50}"
    (run,) = plan_in(tmp_path, f"options: {{swf: a.swf, nodes: '{notation}'}}").runs
    assert (run.arguments[-1].value, run.arguments[-1].sha256) == (notation, "")


def test_a_grid_that_is_not_there_or_too_large_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadGrid, match="No such file"):
        read_grid(tmp_path / "none.yaml", VOCABULARY)
    (tmp_path / "large.yaml").write_text("#" * (1 << 20) + "\n")
    with pytest.raises(BadGrid, match="larger than 1,048,576 bytes"):
        read_grid(tmp_path / "large.yaml", VOCABULARY)


def test_every_option_of_a_simulation_is_one_that_grids_may_set_or_is_refused() -> None:
    """Whoever adds an option says here whether it belongs to a run, or writes files or asks a cluster."""
    workloads = {"swf", "openb-nodes", "openb-pods", "workload", "filename", "now", "assume-run-time"}
    policies = {"policy", "preset", "backfill", "score", "lenient-policy", "plugins-dir"}
    runs = {"nodes", "load", "seed", "sequence", "overrun", "jobs", "cycle", "period", "failures"}
    assert set(VOCABULARY.options) == workloads | policies | runs


def test_without_a_name_a_grid_has_that_of_its_file(tmp_path: Path) -> None:
    (tmp_path / "a.swf").write_text("")
    grid = grid_of("options: {swf: a.swf}", tmp_path / "my study!.yaml", VOCABULARY)
    assert grid.name == "my-study"
    assert grid_in(tmp_path, "options: {swf: a.swf}").name == "grid"


_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["seed", "load", "nodes", "overrun", "x"]), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(st.fixed_dictionaries({}, optional=dict.fromkeys(("name", "options", "axes", "exclude"), _VALUES)))
def test_no_grid_makes_the_reader_fail(grid: object) -> None:
    try:
        grid_of(yaml.safe_dump(grid), Path("grid.yaml"), VOCABULARY)
    except BadGrid as error:
        assert error.errors
