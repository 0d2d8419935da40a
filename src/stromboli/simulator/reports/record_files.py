"""Records as JSON files: the record itself and, for those who read it with other tools, its summary."""

from __future__ import annotations

from collections.abc import Iterable
from math import isfinite
from pathlib import Path
from typing import Any

import msgspec

from stromboli.api.errors import quoted
from stromboli.simulator.reports.measures import summary
from stromboli.simulator.reports.record_errors import RecordError
from stromboli.simulator.reports.written_files import whole_file
from stromboli.simulator.runs.run_record import SCHEMA, RunRecord

MAX_BYTES = 2**30
"""Of a record's file."""
LARGEST_NUMBER = 10**24
"""Of times, in seconds, and of amounts."""


def document(record: RunRecord) -> dict[str, Any]:
    """A record as plain data, with its summary."""
    return {**msgspec.to_builtins(record), "schema": record.schema, "summary": summary(record)}


def save_record(record: RunRecord, path: Path) -> None:
    """Write a record as JSON, with its summary under a key of its own."""
    with whole_file(path) as file:
        file.write(msgspec.json.encode(document(record)))
        file.write(b"\n")


def read_record(path: Path) -> RunRecord:
    """Read a record that was saved; it is held to what a record can be, as it may come from anywhere."""
    try:
        if path.is_file() and path.stat().st_size > MAX_BYTES:
            raise RecordError(str(path), f"it is larger than {MAX_BYTES} bytes")
        with open(path, "rb") as file:
            text = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise RecordError(str(path), f"cannot be read: {error.strerror or error}") from None
    if len(text) > MAX_BYTES:
        raise RecordError(str(path), f"it is larger than {MAX_BYTES} bytes")
    return record_of(text, str(path))


def record_of(text: bytes, file: str) -> RunRecord:
    """The record in the text of a file."""
    try:
        record = msgspec.json.decode(text, type=RunRecord)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        remedy = "`stromboli simulate --save FILE` writes records"
        raise RecordError(file, f"no record of a simulation: {error}; {remedy}") from None
    if record.schema > SCHEMA:
        raise RecordError(file, f"schema {record.schema} is newer than {SCHEMA}, the newest known here")
    if problem := _problem(record):
        raise RecordError(file, problem)
    return record


def _problem(record: RunRecord) -> str:
    """What cannot be true of a record."""
    places = {"pods": [pod.job for pod in record.pods], "evictions": [row.job for row in record.evictions]}
    for field, jobs in places.items():
        for place, job in enumerate(jobs):
            if not 0 <= job < len(record.jobs):
                return f"{field}[{place}].job: {job} is no place in the list of {len(record.jobs)} jobs"
    for field, numbers in _numbers(record):
        for number in numbers:
            if number is not None and not (isfinite(number) and abs(number) <= LARGEST_NUMBER):
                return f"{field}: {quoted(number)} is no number that can be used"
    for field, amounts in (
        ("jobs.pods", (job.pods for job in record.jobs)),
        ("capacity", record.capacity.values()),
    ):
        for amount in amounts:
            if amount < 0:
                return f"{field}: {quoted(amount)} is less than nothing"
    return ""


def _numbers(record: RunRecord) -> Iterable[tuple[str, Iterable[float | None]]]:
    """Every number that measures are made of, field by field."""
    jobs, samples = record.jobs, record.samples
    yield "end", [record.end]
    yield "capacity", record.capacity.values()
    yield "measures", record.measures.values()
    yield "nodes", (amount for node in record.nodes.values() for amount in node.values())
    for name in (
        "submitted",
        "started",
        "ended",
        "first_started",
        "run_time",
        "time_limit",
        "lost_work",
        "pods",
    ):
        yield f"jobs.{name}", (getattr(job, name) for job in jobs)
    yield "jobs.requests", (amount for job in jobs for amount in job.requests.values())
    yield "pods.started", (pod.started for pod in record.pods)
    yield "pods.ended", (pod.ended for pod in record.pods)
    yield "samples.time", (sample.time for sample in samples)
    yield "samples.fragmentation", (sample.fragmentation for sample in samples)
    for name in ("used_by_queue", "deserved_by_queue"):
        amounts = (table.values() for sample in samples for table in getattr(sample, name).values())
        yield f"samples.{name}", (amount for row in amounts for amount in row)
    yield "evictions.time", (eviction.time for eviction in record.evictions)
    yield "evictions.lost_work", (eviction.lost_work for eviction in record.evictions)
