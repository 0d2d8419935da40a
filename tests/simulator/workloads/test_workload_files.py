"""Workloads that are saved and read back, by us or by the tools of others."""

import gzip
import json
from math import inf

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stromboli.simulator.reports.record_files import save_record
from stromboli.simulator.runs.run_record import JobRecord, PodRecord, RunRecord
from stromboli.simulator.workloads.submitted_jobs import SubmittedJob, Workload
from stromboli.simulator.workloads.workload_errors import WorkloadError
from stromboli.simulator.workloads.workload_files import read_workload, write_workload
from tests.number_of_examples import scaled

names = st.text(st.sampled_from("abcyesno019-"), min_size=1, max_size=6)
texts = st.text(max_size=8)
times = st.floats(0, 1e9) | st.integers(0, 10**6).map(float)
jobs = st.builds(
    SubmittedJob,
    names,
    times,
    times | st.just(inf),
    st.integers(1, 1000),
    st.none() | st.integers(0, 5),
    st.dictionaries(names, st.integers(0, 10**9) | st.sampled_from(["1Gi", "500m", "0"]), max_size=3),
    st.none() | times,
    texts,
    texts,
    names,
    st.integers(-1000, 1000),
    st.dictionaries(names, texts, max_size=2),
    st.dictionaries(names, texts, max_size=2),
    st.dictionaries(
        names, st.lists(texts, max_size=2) | st.booleans() | st.none() | st.floats(0, 1), max_size=2
    ),
)
manifests = st.dictionaries(
    names, texts | st.integers(0, 5) | st.dictionaries(names, texts, max_size=2), max_size=3
)
workloads = st.builds(
    Workload,
    texts,
    st.lists(jobs, max_size=4).map(lambda all: tuple(sorted(all, key=lambda job: job.submit_time))),
    st.lists(manifests, max_size=2).map(tuple),
    st.lists(manifests, max_size=2).map(tuple),
    st.lists(texts, max_size=2).map(tuple),
)


@pytest.mark.parametrize("suffix", ["jsonl", "jsonl.gz", "yaml"])
@given(workload=workloads)
@settings(max_examples=scaled(25))
def test_a_saved_workload_is_read_back_equal(tmp_path_factory, suffix, workload):
    file = str(tmp_path_factory.mktemp("saved") / f"workload.{suffix}")
    assert write_workload(workload, file) == []
    assert read_workload(file) == workload


def test_a_trace_says_what_others_can_read_and_tells_what_is_lost(tmp_path):
    workload = Workload(
        "mine",
        (
            SubmittedJob(
                "a", 1.5, 60.0, 4, 2, {"cpu": "1500m", "memory": "1Gi"}, 120.0, "gold", "ada", "team", 5
            ),
            SubmittedJob("b", 2.0, inf, requests={"nvidia.com/gpu": 1}, labels={"x": "y"}),
            SubmittedJob("c", 3.0, 10.25, requests={"cpu": 1}, queue="silver", user="ada"),
        ),
        ({"status": {"allocatable": {"cpu": "8"}}}, {"status": {"allocatable": {"cpu": "8"}}}),
        (),
        ("two\nlines",),
    )
    file = str(tmp_path / "mine.swf")
    losses = write_workload(workload, file)
    lines = (tmp_path / "mine.swf").read_text().splitlines()
    assert "; MaxProcs: 16" in lines
    assert "; Queue: 2 silver" in lines
    assert "; Note: two lines" in lines
    assert lines[-3:] == [
        "1 1.5 -1 60 6 -1 -1 6 120 699051 1 1 1 -1 1 -1 -1 -1",
        "2 2 -1 -1 1 -1 -1 1 -1 -1 1 -1 2 -1 -1 -1 -1 -1",
        "3 3 -1 10.25 1 -1 -1 1 -1 -1 1 1 2 -1 2 -1 -1 -1",
    ]
    assert set(losses) == {
        "1 job runs without end: its run time is written as unknown",
        "1 job requests other resources than CPU and memory",
        "1 job has CPUs that are no whole processors: rounded up",
        "1 job has several pods: only the processors of all together are written",
        "1 job may start with a part of its pods",
        "1 job has a priority",
        "1 job has labels, annotations or other fields",
        "users and namespaces become numbers",
        "2 nodes become one number of processors",
    }
    read = read_workload(file)
    assert [(job.name, job.submit_time, job.run_time, job.requests) for job in read.jobs] == [
        ("job-1", 0.0, 60, {"cpu": 6}),
        ("job-3", 1.5, 10.25, {"cpu": 1}),
    ]


def test_a_trace_is_known_by_its_header_too(tmp_path):
    file = tmp_path / "trace.txt"
    file.write_text("; MaxProcs: 4\n1 0 -1 60 2 -1 -1 2 60 -1 1 -1 -1 -1 -1 -1 -1 -1\n")
    assert len(read_workload(str(file)).jobs) == 1


HEAD = {"apiVersion": "simulator.stromboli.sh/v1", "kind": "Workload", "name": "w"}


@pytest.mark.parametrize(
    ("lines", "problem"),
    [
        ([HEAD | {"kind": "Pod"}], 'kind "Pod" of apiVersion'),
        ([HEAD | {"color": 1}], "saved.jsonl:1: Object contains unknown field `color`"),
        ([HEAD, {"job": {"name": "a"}}], "saved.jsonl:2: job: object missing required field `submitTime`"),
        (
            [HEAD, {"job": {"name": "a", "submitTime": "x"}}],
            "saved.jsonl:2: job.submitTime: expected `float`, got `str`",
        ),
        ([HEAD, {"job": {"name": "a", "submitTime": -1}}], "job.submitTime: expected `float` >= 0.0"),
        (
            [HEAD, {"job": {"name": "a", "submitTime": 1, "pods": 10**9}}],
            "job.pods: expected `int` <= 100000",
        ),
        ([HEAD, "{"], "saved.jsonl:2"),
        ([HEAD, "[" * 5000], "saved.jsonl:2"),
        ([HEAD, '{"job":' + '{"spec":' * 3000], "saved.jsonl:2"),
    ],
)
def test_what_cannot_be_read_back_is_told_with_its_line(tmp_path, lines, problem):
    file = tmp_path / "saved.jsonl"
    file.write_text("\n".join(line if isinstance(line, str) else json.dumps(line) for line in lines))
    with pytest.raises(WorkloadError) as error:
        read_workload(str(file))
    assert problem in str(error.value)


def test_jobs_written_by_hand_need_not_be_in_order(tmp_path):
    file = tmp_path / "hand.yaml"
    file.write_text(
        "apiVersion: simulator.stromboli.sh/v1\nkind: Workload\nname: hand\n"
        "jobs:\n- {name: late, submitTime: 9}\n- {name: early, submitTime: 1, runTime: 5}\n"
    )
    assert [job.name for job in read_workload(str(file)).jobs] == ["early", "late"]


def test_yaml_without_a_kind_is_told_which_kinds_there_are(tmp_path):
    file = tmp_path / "grid.yaml"
    file.write_text("axes: {load: [1, 2]}\n")
    with pytest.raises(WorkloadError, match="no kind; expected Workload or WorkloadGenerator"):
        read_workload(str(file))


def test_where_it_cannot_be_written_or_how_is_told(tmp_path):
    workload = Workload("w", ())
    with pytest.raises(WorkloadError, match=r"out\.csv: how to write it\? Give a name with \.swf"):
        write_workload(workload, "out.csv")
    with pytest.raises(WorkloadError, match="cannot be written: No such file"):
        write_workload(workload, str(tmp_path / "no" / "w.yaml"))


def test_what_is_compressed_is_the_same_each_time(tmp_path):
    first, second = tmp_path / "a.jsonl.gz", tmp_path / "b.jsonl.gz"
    for file in (first, second):
        write_workload(Workload("w", (SubmittedJob("a", 0.0),)), str(file))
    assert first.read_bytes() == second.read_bytes()
    assert len(gzip.decompress(first.read_bytes()).splitlines()) == 2


@pytest.mark.parametrize("pods", [0, 60_000])
def test_the_record_of_a_run_is_no_workload_and_the_way_out_is_told(tmp_path, pods):
    file = tmp_path / "run.json"
    runs = [PodRecord(0, f"a-{number}", "n1", 0.0, 1.0) for number in range(pods)]
    save_record(RunRecord("small", {"cpu": 4.0}, {}, [JobRecord("a", 0.0, 1, {})], runs), file)
    with pytest.raises(WorkloadError, match="the record of a run, not a workload: `stromboli compare "):
        read_workload(str(file))
