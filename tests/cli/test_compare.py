"""`stromboli compare` as a user runs it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from stromboli.simulator.reports.record_files import save_record
from tests.simulator.reports.run_records import busy_run


@pytest.fixture
def records(tmp_path: Path) -> Path:
    """Two configurations with three seeds each."""
    for seed in (1, 2, 3):
        for name, slack in (("tight", 1.0), ("wide", 1.6)):
            record = busy_run(
                60, seed=seed, slack=slack, settings={"slack": slack, "seed": seed}, name="made up"
            )
            save_record(record, tmp_path / f"{name}-{seed}.json")
    return tmp_path


def test_runs_stand_side_by_side_with_their_differences(run, records):
    shown = run("compare", f"tight={records}/tight-*.json", f"wide={records}/wide-*.json")
    assert shown.exit_code == 0, shown.output
    assert "tight (n=3)" in shown.output
    assert "against tight" in shown.output
    line = next(line for line in shown.output.splitlines() if line.startswith("Mean wait"))
    assert " % [" in line
    assert "paired by seed" in shown.output
    assert "Mean slowdown" not in shown.output
    wide = run("compare", f"tight={records}/tight-*.json", f"wide={records}/wide-*.json", "-o", "wide")
    assert "Mean slowdown" in wide.output


def test_records_without_names_are_grouped_by_their_settings(run, records):
    shown = run("compare", records, "-o", "json")
    told = json.loads(shown.output)
    assert [entry["name"] for entry in told["configurations"]] == ["slack=1.0", "slack=1.6"]
    assert told["configurations"][0]["seeds"] == [1, 2, 3]
    assert told["measures"]["mean_wait_s"]["slack=1.6"]["difference"] < 0
    assert yaml.safe_load(run("compare", records, "-o", "yaml").output) == told


def test_one_seed_each_is_compared_and_not_tested(run, records):
    shown = run("compare", records / "tight-1.json", records / "wide-1.json", "--test", "permutation")
    assert shown.exit_code == 0
    assert "nothing can be tested" in shown.output
    assert "*" not in shown.output


def test_several_files_stand_behind_a_name(run, records):
    files = ",".join(str(records / f"tight-{seed}.json") for seed in (1, 2, 3))
    shown = run("compare", f"a={files}", f"b={records}/wide-1.json")
    assert "a (n=3)" in shown.output
    assert "One run only, so it cannot be tested: b." in shown.output


def test_a_page_is_written(run, records):
    shown = run("compare", records, "--report", records / "page.html")
    assert shown.exit_code == 0
    assert (records / "page.html").read_text().startswith("<!doctype html>")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["{0}/tight-1.json"], "one record alone: give another to compare it with"),
        (["a={0}/missing.json", "b={0}/tight-1.json"], "missing.json: cannot be read: No such file"),
        (["{0}/none-*.json"], "no file matches"),
        (["=x", "b"], "write NAME=RECORD"),
        (["{0}/empty", "{0}/tight-1.json"], "no record in this folder"),
        (["{0}/text.json", "{0}/tight-1.json"], "no record of a simulation"),
        (["{0}", "--confidence", "2"], "it lies between 0.5 and 1"),
        (["{0}", "--report", "{0}/missing/page.html"], "page.html: there is no folder"),
        (["{0}", "--report", "{0}"], "this is a folder; give the name of a file"),
        (["{0}", "--plots", "{0}/tight-1.json"], "tight-1.json: this is a file; give the name of a folder"),
    ],
)
def test_what_cannot_be_compared_is_told_in_a_sentence(run, records, arguments, words):
    (records / "empty").mkdir()
    if "text" in arguments[0]:
        (records / "text.json").write_text("hello")
    shown = run("compare", *(argument.format(records) for argument in arguments))
    assert shown.exit_code == 2
    assert words in shown.output
    assert "Traceback" not in shown.output


def test_plots_without_the_library_that_draws_name_the_way_out(run, records, monkeypatch):
    monkeypatch.setattr("stromboli.cli.simulate.report_files.find_spec", lambda name: None)
    shown = run("compare", records, "--plots", records / "plots")
    assert shown.exit_code == 2
    assert "pip install matplotlib" in shown.output
