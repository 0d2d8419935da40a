"""Traces in the Standard Workload Format: a record of 18 numbers for each job, -1 for what is not known.

A job asks for the processors that it requested, or for those that it got where the request is not recorded, and
its time limit is the time that it requested, or its run time. Times begin with the first job.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from stromboli.api import names
from stromboli.simulator.cluster_notation import nodes, queues
from stromboli.simulator.count_sentences import count_sentence
from stromboli.simulator.workloads.gang_shapes import GangShapes, NodeRoom
from stromboli.simulator.workloads.submitted_jobs import SubmittedJob, Workload
from stromboli.simulator.workloads.swf_header import SwfHeader
from stromboli.simulator.workloads.trace_lines import (
    REPORT_EVERY,
    Progress,
    count_lines,
    no_progress,
    trace_lines,
)
from stromboli.simulator.workloads.workload_errors import WorkloadError

MAX_BYTES = 2**29
"""Of a trace once it is decompressed: enough for `MAX_JOBS` records of the usual length."""
MAX_JOBS = 5_000_000
"""Records of a trace."""
MAX_LINES = 6_000_000
"""Of a trace: records and header notes."""
MAX_PROCESSORS = 10**9
"""Of the machine."""
MAX_NUMBER = 10**15
"""Of jobs, users, groups, queues, partitions, and processors of a job."""
MAX_SECONDS = 1e11
"""The latest moment and the longest time of a trace: some 3,000 years."""
COLUMNS = 18
_PART_OF_A_JOB = (2, 3, 4)
"""Statuses of records that tell of one run of a job that was suspended; another record sums them up."""
_CUT = "{is} cut at {its} requested time; --overrun lets {them} run on"
_PRECEDED = "name{s} a preceding job: {it} {is} submitted at the recorded time all the same"
_MEMORY = "1Ti"


class SwfRecord(NamedTuple):
    """The columns of a record that are used, as they stand there."""

    line: int
    job: int
    submit: float
    run: float
    allocated: int
    requested: int
    requested_time: float
    status: int
    user: int
    group: int
    queue: int
    partition: int
    preceding: int

    @property
    def processors(self) -> int:
        return self.requested if self.requested > 0 else self.allocated


@dataclass(frozen=True, slots=True)
class SwfOptions:
    """How the records of a trace become jobs."""

    nodes: tuple[NodeRoom, ...] = ()
    """Those that they are for; none: one with as many CPUs as the trace's own machine has processors."""
    cpus_per_pod: int | None = None
    """The most CPUs of a pod, of which a job then is a gang; None: as many as the smallest node has."""
    overrun: bool = False
    """Runs go on beyond the time limit instead of ending there."""
    queues: bool = False
    """Jobs go to the queues of the trace, or to its partitions where it has no queues; otherwise to `default`."""


AS_RECORDED = SwfOptions()


@dataclass(slots=True)
class _Trace:
    """All of a file, before anything is left out."""

    header: SwfHeader = field(default_factory=SwfHeader)
    records: list[SwfRecord] = field(default_factory=list)


def read_swf(path: str, options: SwfOptions = AS_RECORDED, progress: Progress = no_progress) -> Workload:
    """The jobs of a trace, on a node with a CPU for each of the machine's processors."""
    trace = _read(path, progress)
    notes: list[str] = []
    size = _machine_size(path, trace, notes)
    shapes = GangShapes(options.nodes or (NodeRoom(size, size),), options.cpus_per_pod)
    usable = list(_usable(trace.records, shapes, notes))
    if not usable:
        raise WorkloadError(path, f"none of its {len(trace.records)} records is a job that can be run")
    usable.sort(key=lambda record: record.submit)
    _note_order([record for record in trace.records if record.submit >= 0], notes)
    submitted = _Submission(trace.header, options, shapes, usable[0].submit)
    jobs = tuple(submitted.jobs(usable, progress))
    if cut := sum(job.run_time < record.run for job, record in zip(jobs, usable, strict=True)):
        notes.append(count_sentence(cut, "job", _CUT, of=len(jobs)))
    notes += _header_notes(trace)
    notes += [f"the trace says: {remark[:200]}" for remark in trace.header.remarks[:20]]
    names_of_queues = sorted({job.queue for job in jobs} - {"", names.DEFAULT_QUEUE})
    machine = nodes(f"machine cpu={size},memory={_MEMORY},pods={size}")
    return Workload(_name(path), jobs, tuple(machine), tuple(queues(";".join(names_of_queues))), tuple(notes))


# -- records


def _read(path: str, progress: Progress) -> _Trace:
    if (lines := count_lines(path, MAX_BYTES)) > MAX_LINES:
        raise WorkloadError(path, f"{lines} lines, at most {MAX_LINES} are read; cut it into parts")
    trace = _Trace()
    for number, line in trace_lines(path, progress=progress):
        fields = line.split()
        if not fields:
            continue
        if fields[0].startswith(";"):
            trace.header.read(line)
            continue
        if len(trace.records) == MAX_JOBS:
            raise WorkloadError(path, f"more than {MAX_JOBS} records; cut it into parts", number)
        trace.records.append(_record(path, number, fields))
    return trace


def _record(path: str, line: int, fields: list[str]) -> SwfRecord:
    if len(fields) < COLUMNS:
        raise WorkloadError(
            path, f"{len(fields)} columns, expected {COLUMNS}: is it Standard Workload Format?", line
        )
    try:
        values = [float(text) for text in fields[:COLUMNS]]
    except ValueError:
        values = []
    if not values or not all(map(math.isfinite, values)):
        column, text = next((at, text) for at, text in enumerate(fields, 1) if not _is_number(text))
        raise WorkloadError(path, f"column {column}: {text[:40]!r} is no number", line)
    times = (values[1], values[3], values[8])
    counts = tuple(values[at] for at in (0, 4, 7, 10, 11, 12, 14, 15, 16))
    if max(map(abs, times)) > MAX_SECONDS:
        raise WorkloadError(path, f"a time of {max(times, key=abs):g} s, more than {MAX_SECONDS:g} s", line)
    if bad := [count for count in counts if abs(count) > MAX_NUMBER or not count.is_integer()]:
        raise WorkloadError(path, f"{bad[0]:.16g} is no whole number up to {MAX_NUMBER}", line)
    job, allocated, requested, status, user, group, queue, partition, preceding = map(int, counts)
    return SwfRecord(
        line,
        job,
        times[0],
        times[1],
        allocated,
        requested,
        times[2],
        status,
        user,
        group,
        queue,
        partition,
        preceding,
    )


def _is_number(text: str) -> bool:
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False


# -- what is left out, and what is worth a note


def _machine_size(path: str, trace: _Trace, notes: list[str]) -> int:
    for name in ("MaxProcs", "MaxNodes"):
        if size := trace.header.number(name):
            break
    else:
        name = "the largest job"
        size = max((record.processors for record in trace.records if _has_run(record)), default=1)
        notes.append(
            f"neither MaxProcs nor MaxNodes is given: the machine has {size} processors as the largest job"
        )
    if size > MAX_PROCESSORS:
        raise WorkloadError(path, f"{name}: {size} is more than {MAX_PROCESSORS}")
    return max(size, 1)


def _has_run(record: SwfRecord) -> bool:
    return record.submit >= 0 and record.run > 0


def _usable(records: list[SwfRecord], shapes: GangShapes, notes: list[str]) -> Iterator[SwfRecord]:
    """The records of jobs that can be run; why others cannot is noted, with their number."""
    left_out: Counter[str] = Counter()
    summed_up = {record.job for record in records if record.status not in _PART_OF_A_JOB}
    for record in records:
        if problem := _problem(record, shapes, summed_up):
            left_out[problem] += 1
        else:
            yield record
    notes += [f"{count} of {len(records)} records left out: {problem}" for problem, count in left_out.items()]


def _problem(record: SwfRecord, shapes: GangShapes, summed_up: set[int]) -> str:
    if record.submit < 0:
        return "no submit time"
    if record.run <= 0:
        return "no run time"
    if record.processors <= 0:
        return "no processors"
    if record.processors > shapes.processors:
        return f"more than {shapes.processors} processors"
    if shapes.of(record.processors) is None:
        return "the nodes do not take as many pods as they would be"
    if record.status in _PART_OF_A_JOB and record.job in summed_up:
        return "part of a job that another record sums up"
    return ""


def _note_order(records: list[SwfRecord], notes: list[str]) -> None:
    late = sum(second.submit < first.submit for first, second in pairwise(records))
    if late:
        notes.append(
            count_sentence(late, "record", "stand{s} after later ones: jobs are submitted by their times")
        )
    if after := sum(record.preceding > 0 for record in records):
        notes.append(count_sentence(after, "job", _PRECEDED))


def _header_notes(trace: _Trace) -> Iterator[str]:
    """When the trace began, and whether it is a part of a longer one."""
    header = trace.header
    begin = header.number("UnixStartTime")
    if begin is not None and begin < MAX_SECONDS:
        yield f"recorded from {datetime.fromtimestamp(begin, UTC):%Y-%m-%d %H:%M:%S} UTC on"
    total = header.number("MaxJobs") or header.number("MaxRecords")
    if total is not None and total > len(trace.records):
        yield f"its header tells of {total} jobs: {len(trace.records)} are in the file"


# -- jobs


class _Submission:
    """Makes jobs of records; equal requests are one value, as traces are long."""

    def __init__(self, header: SwfHeader, options: SwfOptions, shapes: GangShapes, begin: float) -> None:
        self._header = header
        self._options = options
        self._shapes = shapes
        self._begin = begin
        self._requests: dict[int, dict[str, int | str]] = {}
        self._names: Counter[int] = Counter()

    def jobs(self, records: Sequence[SwfRecord], progress: Progress) -> Iterator[SubmittedJob]:
        for number, record in enumerate(records):
            if number % REPORT_EVERY == 0:
                progress("Creating jobs", number, len(records))
            yield self._job(record)

    def _job(self, record: SwfRecord) -> SubmittedJob:
        limit = record.requested_time if record.requested_time > 0 else record.run
        shape = self._shapes.of(record.processors)
        assert shape is not None, "others are left out"
        self._names[record.job] += 1
        again = self._names[record.job]
        return SubmittedJob(
            f"job-{record.job}" if again == 1 and record.job >= 0 else f"line-{record.line}",
            record.submit - self._begin,
            record.run if self._options.overrun else min(record.run, limit),
            shape.pods,
            requests=self._requests.setdefault(shape.cpus, {names.CPU: shape.cpus}),
            time_limit=limit,
            queue=self._queue(record) if self._options.queues else "",
            user=f"user-{record.user}" if record.user >= 0 else "",
            namespace=f"group-{record.group}" if record.group >= 0 else names.DEFAULT_NAMESPACE,
        )

    def _queue(self, record: SwfRecord) -> str:
        header = self._header
        if record.queue >= 0:
            return header.queues.get(record.queue, f"queue-{record.queue}")
        if record.partition >= 0:
            return header.partitions.get(record.partition, f"partition-{record.partition}")
        return ""


def _name(path: str) -> str:
    name = Path(path).name.removesuffix(".gz")
    return name.removesuffix(".swf")
