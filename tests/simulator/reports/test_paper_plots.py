"""Plots for papers: files of the format asked for, the same bytes for the same run, whatever names say."""

from __future__ import annotations

import re

import pytest

from stromboli.simulator.reports.comparison.configurations import Configuration
from stromboli.simulator.reports.comparison.record_groups import run_of
from stromboli.simulator.reports.comparison.run_comparison import compare
from stromboli.simulator.reports.paper_plots import plot_comparison, plot_run
from stromboli.simulator.runs.run_record import RunRecord
from tests.simulator.reports.run_records import busy_run, job, record_of

pytest.importorskip("matplotlib", reason="an extra: stromboli[plots]")


def test_a_run_is_drawn_the_same_each_time(tmp_path):
    record = busy_run(60)
    first, second = (plot_run(record, tmp_path / name, "svg") for name in ("a", "b"))
    names = ["utilisation", "queue", "wait", "slowdown", "queues", "users", "gangs"]
    assert [path.stem for path in first] == names
    assert [path.read_bytes() for path in first] == [path.read_bytes() for path in second]
    assert b"Utilisation" in first[0].read_bytes()


def test_hostile_names_are_drawn_as_they_are(tmp_path):
    hostile = record_of(
        job("a", 0, 3, 10, queue="$\\frac{", user="_$^"), job("b", 0, 0, 3, queue="b"), end=10
    )
    assert all(path.read_bytes().startswith(b"\x89PNG") for path in plot_run(hostile, tmp_path, "png"))


def test_of_an_empty_run_nothing_is_drawn(tmp_path):
    assert plot_run(RunRecord("empty", {"cpu": 1}, {}, []), tmp_path, "svg") == []
    drawn = plot_run(record_of(job("waits", 0, None, None), end=5), tmp_path, "pdf")
    assert drawn
    assert all(path.read_bytes().startswith(b"%PDF") for path in drawn)


def test_a_comparison_is_drawn(tmp_path):
    configurations = [
        Configuration(f"c{n}", tuple(run_of(busy_run(30, seed=seed, slack=1 + n)) for seed in (1, 2)))
        for n in (0, 1)
    ]
    files = plot_comparison(compare(configurations), tmp_path, "svg")
    assert {"wait", "slowdown", "mean_wait_s", "utilisation"} <= {path.stem for path in files}
    assert re.search(r"Makespan \[(min|h)\]", (tmp_path / "makespan_s.svg").read_text())
    assert "evictions" not in {path.stem for path in files}
