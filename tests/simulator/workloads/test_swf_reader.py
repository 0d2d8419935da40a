"""Traces in the Standard Workload Format."""

import gzip
from contextlib import suppress

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from stromboli.simulator.workloads import swf_reader, trace_lines
from stromboli.simulator.workloads.gang_shapes import NodeRoom
from stromboli.simulator.workloads.swf_reader import AS_RECORDED, SwfOptions, read_swf
from stromboli.simulator.workloads.workload_errors import WorkloadError
from tests.number_of_examples import scaled

HEADER = """; Version: 2.2
; MaxNodes: 4
; MaxProcs: 8
; Note: made up
; Queue:  1 [fque:1]
; Partition: 2 ALL nodes
;
"""


WORDS = st.sampled_from(
    [
        "-1",
        "0",
        "1",
        "2.5",
        "1e308",
        "nan",
        ";",
        "MaxProcs:",
        "Queue:",
        "UnixStartTime:",
        "9" * 30,
        "٣",
        "\x00",
        "x",
    ]
)


def record(
    job=1,
    submit=0,
    run=60,
    allocated=2,
    requested=-1,
    limit=-1,
    status=1,
    user=7,
    group=3,
    queue=-1,
    partition=-1,
):
    columns = [
        job,
        submit,
        -1,
        run,
        allocated,
        -1,
        -1,
        requested,
        limit,
        -1,
        status,
        user,
        group,
        -1,
        queue,
        partition,
        -1,
        -1,
    ]
    return " ".join(map(str, columns)) + "\n"


@pytest.fixture
def swf(tmp_path):
    def read(text, options=AS_RECORDED, name="trace.swf"):
        file = tmp_path / name
        file.write_bytes(text if isinstance(text, bytes) else text.encode())
        return read_swf(str(file), options)

    return read


def test_a_record_becomes_a_pod_with_a_cpu_for_each_processor(swf):
    workload = swf(HEADER + record(job=12, submit=100, limit=90))
    (job,) = workload.jobs
    assert (job.name, job.submit_time, job.run_time, job.pods) == ("job-12", 0, 60, 1)
    assert (job.requests, job.time_limit, job.user, job.namespace) == ({"cpu": 2}, 90, "user-7", "group-3")
    assert workload.name == "trace"
    assert workload.notes == ("the trace says: made up",)


@pytest.mark.parametrize(
    ("header", "cpus", "told"),
    [
        ("; MaxProcs: 8\n; MaxNodes: 4\n", "8", False),
        ("; MaxNodes: 4 of two processors\n", "4", False),
        ("\ufeff;MaxNodes:4;\r\n", "4", False),
        (";\tmaxprocs :\t1,024 (in all)\n; MaxNodes: 4\n", "1024", False),
        ("; MaxProcs: 3.5\n; MaxNodes: 0\n", "3", True),
        (";MaxProcs: -1\n; MaxNodes: unknown\n", "3", True),
        ("", "3", True),
    ],
)
def test_the_pool_has_max_procs_else_max_nodes_else_what_the_largest_job_needs(swf, header, cpus, told):
    never_ran = record(3, run=-1, allocated=500)
    workload = swf(header + record(1, allocated=1) + record(2, allocated=3) + never_ran)
    assert workload.nodes[0]["status"]["allocatable"]["cpu"] == cpus
    assert any("largest job" in note for note in workload.notes) == told


def test_requested_processors_count_before_allocated_ones(swf):
    workload = swf(HEADER + record(1, allocated=6, requested=4) + record(2, allocated=6))
    assert [job.requests["cpu"] for job in workload.jobs] == [4, 6]


def test_unusable_records_are_left_out_and_counted(swf):
    workload = swf(
        HEADER
        + record(1)
        + record(2, run=-1)
        + record(3, run=0)
        + record(4, allocated=-1)
        + record(5, allocated=9)
        + record(6, submit=-1)
        + record(1, status=3)
    )
    assert [job.name for job in workload.jobs] == ["job-1"]
    assert set(workload.notes[:-1]) == {
        "2 of 7 records left out: no run time",
        "1 of 7 records left out: no processors",
        "1 of 7 records left out: more than 8 processors",
        "1 of 7 records left out: no submit time",
        "1 of 7 records left out: part of a job that another record sums up",
    }


def test_runs_end_at_the_estimate_unless_they_may_overrun(swf):
    text = HEADER + record(1, run=100, limit=60) + record(2, run=100)
    assert [(job.run_time, job.time_limit) for job in swf(text).jobs] == [(60, 60), (100, 100)]
    assert "1 of 2 jobs is cut at its requested time; --overrun lets it run on" in swf(text).notes
    overrun = swf(text, SwfOptions(overrun=True))
    assert [job.run_time for job in overrun.jobs] == [100, 100]
    assert not any("cut" in note for note in overrun.notes)


def test_jobs_are_submitted_by_their_times_and_times_may_be_fractions(swf):
    workload = swf(HEADER + record(1, submit=10.5) + record(2, submit=7.25) + record(3, submit=10.5))
    assert [(job.name, job.submit_time) for job in workload.jobs] == [
        ("job-2", 0),
        ("job-1", 3.25),
        ("job-3", 3.25),
    ]
    assert "1 record stands after later ones: jobs are submitted by their times" in workload.notes


@pytest.mark.parametrize(
    ("processors", "most", "pods", "cpus"),
    [(8, 4, 2, 4), (6, 4, 2, 3), (7, 4, 7, 1), (2, 4, 1, 2), (8, 1, 8, 1)],
)
def test_a_gang_has_equal_pods_that_add_up_to_the_processors(swf, processors, most, pods, cpus):
    (job,) = swf(HEADER + record(allocated=processors), SwfOptions(cpus_per_pod=most)).jobs
    assert (job.pods, job.requests) == (pods, {"cpu": cpus})


def test_jobs_larger_than_the_given_cluster_are_left_out(swf):
    workload = swf(HEADER + record(1, allocated=8) + record(2), SwfOptions((NodeRoom(4, 110),)))
    assert [job.name for job in workload.jobs] == ["job-2"]


def test_a_gang_is_one_that_the_empty_nodes_can_hold(swf):
    nodes = (NodeRoom(5, 110),) * 3
    (job,) = swf("; MaxProcs: 16\n" + record(allocated=14), SwfOptions(nodes)).jobs
    assert (job.pods, job.requests) == (14, {"cpu": 1}), "of pods with 2 CPUs each node holds two"
    few_pods = swf("; MaxProcs: 16\n" + record(1, allocated=7) + record(2), SwfOptions((NodeRoom(5, 3),) * 2))
    assert [job.name for job in few_pods.jobs] == ["job-2"]
    assert few_pods.notes == ("1 of 2 records left out: the nodes do not take as many pods as they would be",)


def test_numbers_of_users_and_jobs_may_be_large(swf):
    (job,) = swf(HEADER + record(job=10**14, user=4_294_967_295)).jobs
    assert (job.name, job.user) == ("job-100000000000000", "user-4294967295")


def test_queues_of_the_trace_are_used_on_request(swf):
    text = HEADER + record(1, queue=1) + record(2, queue=5) + record(3, partition=2) + record(4)
    assert {job.queue for job in swf(text).jobs} == {""}
    workload = swf(text, SwfOptions(queues=True))
    assert [job.queue for job in workload.jobs] == ["fque", "queue-5", "all", ""]
    assert [queue["metadata"]["name"] for queue in workload.objects] == ["all", "fque", "queue-5"]


def test_jobs_of_one_number_have_names_of_their_own(swf):
    assert [job.name for job in swf(HEADER + record(1) + record(1)).jobs] == ["job-1", "line-9"]


def test_when_it_was_recorded_and_what_is_missing_is_noted(swf):
    workload = swf("; UnixStartTime: 1027839845\n; MaxJobs: 500\n" + HEADER + record(1))
    assert workload.notes[:2] == (
        "recorded from 2002-07-28 07:04:05 UTC on",
        "its header tells of 500 jobs: 1 are in the file",
    )


@settings(max_examples=scaled(40))
@given(lines=st.lists(st.lists(WORDS, max_size=20).map(" ".join), max_size=5))
@example(lines=["; UnixStartTime: 99999999999"])
def test_whatever_a_file_holds_it_is_read_or_refused_with_words(tmp_path_factory, lines):
    file = tmp_path_factory.mktemp("swf") / "trace.swf"
    file.write_text("\n".join([*lines, record(1)]))
    with suppress(WorkloadError):
        assert read_swf(str(file)).jobs


def test_a_compressed_trace_is_read_as_a_plain_one(swf):
    workload = swf(gzip.compress((HEADER + record(1)).encode()), name="trace.swf.gz")
    assert (workload.name, len(workload.jobs)) == ("trace", 1)


@pytest.mark.parametrize("compress", [bytes, gzip.compress])
def test_a_trace_with_too_many_lines_or_bytes_is_refused_before_a_record_is_read(swf, monkeypatch, compress):
    monkeypatch.setattr(swf_reader, "_record", lambda *_: pytest.fail("a record was read"))
    trace = compress(record().encode() * 1000)
    monkeypatch.setattr(swf_reader, "MAX_LINES", 999)
    with pytest.raises(WorkloadError, match="1000 lines, at most 999 are read; cut it into parts"):
        swf(trace)
    monkeypatch.setattr(swf_reader, "MAX_BYTES", 1000)
    with pytest.raises(WorkloadError, match="it is larger than 1000 bytes; cut it into parts"):
        swf(trace)


def test_progress_is_reported_while_a_trace_is_read(tmp_path, monkeypatch):
    monkeypatch.setattr(swf_reader, "REPORT_EVERY", 10)
    monkeypatch.setattr(trace_lines, "REPORT_EVERY", 10)
    file = tmp_path / "trace.swf"
    file.write_text("".join(record(job) for job in range(1, 31)))
    reports = []
    read_swf(str(file), progress=lambda *report: reports.append(report))
    size = file.stat().st_size
    assert [step for step, _, _ in reports] == ["Reading"] * 3 + ["Creating jobs"] * 3
    assert {total for step, _, total in reports if step == "Reading"} == {size}
    assert reports[3:] == [("Creating jobs", done, 30) for done in (0, 10, 20)]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("1 2 3\n", "trace.swf:1: 3 columns, expected 18"),
        (record(run="long"), "trace.swf:1: column 4: 'long' is no number"),
        (";\n" + record(submit="nan"), "trace.swf:2: column 2: 'nan' is no number"),
        (record(run="1e400"), "column 4: '1e400' is no number"),
        (record(run="1e300"), "a time of 1e+300 s"),
        (record(allocated=1.5), "1.5 is no whole number up to 1000000000000000"),
        (record(user=10**16), "1e+16 is no whole number"),
        (record(allocated=10**12), "the largest job: 1000000000000 is more than 1000000000"),
        ("; MaxProcs: 99999999999\n" + record(), "MaxProcs: 99999999999 is more than 1000000000"),
        (record(run=0), "none of its 1 records is a job that can be run"),
        ("", "none of its 0 records"),
        ("1" * 100_000, "trace.swf:1: the line is longer than 65536 bytes"),
        (b"\x1f\x8b broken", "trace.swf: cannot be read"),
        (gzip.compress(record().encode(), mtime=0)[:-12], "trace.swf: cannot be read"),
        (b"\xff\xfe" + record().encode(), "trace.swf:1: column 1"),
    ],
)
def test_what_is_no_trace_is_told_with_its_line_and_value(swf, text, problem):
    with pytest.raises(WorkloadError) as error:
        swf(text)
    assert problem in str(error.value)


def test_a_trace_that_is_not_there_is_told():
    with pytest.raises(WorkloadError, match=r"nowhere.swf: cannot be read: No such file"):
        read_swf("nowhere.swf")
