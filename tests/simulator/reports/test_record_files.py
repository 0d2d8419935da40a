"""Records and tables as files: what is written can be read, and what is no record is refused with a reason."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import msgspec
import pytest

from stromboli.simulator.reports.csv_files import write_csv
from stromboli.simulator.reports.measures import summary
from stromboli.simulator.reports.record_errors import RecordError
from stromboli.simulator.reports.record_files import read_record, record_of, save_record
from stromboli.simulator.reports.written_files import whole_file
from stromboli.simulator.runs.run_record import EvictionRecord, JobRecord
from tests.simulator.reports.run_records import busy_run, job
from tests.simulator.reports.run_records import record_of as run_of


def rows(file: Path) -> list[dict[str, str]]:
    with open(file, newline="") as text:
        return list(csv.DictReader(text))


def test_a_record_comes_back_as_it_was_saved_with_its_summary_beside_it(tmp_path):
    record = busy_run(50, settings={"backfill": "easy"}, notes=["a note"])
    save_record(record, tmp_path / "run.json")
    assert read_record(tmp_path / "run.json") == record
    saved = json.loads((tmp_path / "run.json").read_text())
    assert saved["schema"] == 1
    assert saved["summary"]["mean_wait_s"] == summary(record)["mean_wait_s"]


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (
            {"pods": [{"job": 7, "pod": "p", "node": "n", "started": 0, "ended": 1}]},
            "pods[0].job: 7 is no place",
        ),
        (
            {"pods": [{"job": -1, "pod": "p", "node": "n", "started": 0, "ended": 1}]},
            "pods[0].job: -1 is no place",
        ),
        ({"end": 1e300}, "end: 1e+300 is no number that can be used"),
        ({"capacity": {"cpu": -1}}, "capacity: -1.0 is less than nothing"),
        ({"schema": 99}, "schema 99 is newer than 1"),
        ({"jobs": 3}, "no record of a simulation: Expected `array`, got `int` - at `$.jobs`"),
    ],
)
def test_what_cannot_be_true_of_a_record_is_told(change, problem):
    content = msgspec.to_builtins(run_of(job("a", 0, 0, 1))) | change
    with pytest.raises(RecordError) as refused:
        record_of(json.dumps(content).encode(), "run.json")
    assert str(refused.value).startswith(f"run.json: {problem}")


@pytest.mark.parametrize(
    "text", [b"", b"no json", b"[1]", b"\xff\xfe", b"{}", b'{"jobs": []}', b"[" * 100_000]
)
def test_a_file_that_is_no_record_is_refused_and_the_way_out_named(text, tmp_path):
    (tmp_path / "run.json").write_bytes(text)
    with pytest.raises(RecordError, match=r"run\.json: no record of a simulation.*--save FILE"):
        read_record(tmp_path / "run.json")


def test_byte_seconds_of_a_petabyte_in_a_year_are_no_problem(tmp_path):
    record = run_of(job("a", 0, 0, 1), measures={"used_memory_s": 1e15 * 3e7})
    save_record(record, tmp_path / "run.json")
    assert read_record(tmp_path / "run.json") == record


def test_a_file_that_is_not_there_is_told(tmp_path):
    with pytest.raises(RecordError, match="cannot be read: No such file"):
        read_record(tmp_path / "missing.json")
    with pytest.raises(RecordError, match="cannot be read: Is a directory"):
        read_record(tmp_path)


def test_a_write_that_fails_leaves_the_file_that_was_there(tmp_path):
    (tmp_path / "run.json").write_text("before")

    def write_half() -> None:
        with whole_file(tmp_path / "run.json") as file:
            file.write(b"half")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        write_half()
    assert [path.read_text() for path in tmp_path.iterdir()] == ["before"]


def test_all_of_a_run_is_written_as_tables(tmp_path):
    record = busy_run(40)
    record.evictions.append(EvictionRecord(5, 3, "job-3-0", "node-1", 2.5, "preempt", "job-9"))
    files = write_csv(record, tmp_path / "new" / "folder")
    assert [file.stem for file in files] == [
        "jobs",
        "pods",
        "samples",
        "samples-by-queue",
        "evictions",
        "summary",
    ]
    jobs, pods, samples, by_queue, evictions, measures = map(rows, files)
    assert len(jobs) == 40
    assert float(jobs[7]["wait"]) == record.jobs[7].started - record.jobs[7].submitted
    assert float(jobs[7]["request cpu"]) == record.jobs[7].requests["cpu"]
    assert len(pods) == len(record.pods)
    assert len(samples) == len(record.samples)
    assert {row["queue"] for row in by_queue} == {"research", "production", "default"}
    assert evictions[0]["lost_work"] == "2.5"
    told = {(row["of"], row["name"], row["measure"]): row["value"] for row in measures}
    assert float(told["run", "", "utilisation"]) == summary(record)["utilisation"]
    assert int(told["queue", "research", "jobs"]) == summary(record)["queues"]["research"]["jobs"]
    assert ("resource", "cpu", "utilisation") in told


@pytest.mark.parametrize("name", ['=HYPERLINK("http://x")', "+1", "-1", "@SUM(A1)", "\tx", "\r=1"])
def test_no_name_becomes_a_formula_in_a_spreadsheet(name, tmp_path):
    write_csv(run_of(job(name, 0, 0, 1, user=name), JobRecord("a", 0, 1, {name: 1})), tmp_path)
    row = rows(tmp_path / "jobs.csv")[0]
    assert row["name"] == row["user"] == f"'{name}"


def test_names_with_quotes_commas_and_lines_stay_one_cell(tmp_path):
    name = 'a,"b"\nc'
    write_csv(run_of(job(name, 0, None, None)), tmp_path)
    row = rows(tmp_path / "jobs.csv")[0]
    assert (row["name"], row["started"], row["wait"]) == (name, "", "")
