"""A run as CSV files: jobs, pods, samples, samples by queue, evictions and the summary."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from stromboli.simulator.reports.measures import Summary, summary
from stromboli.simulator.reports.record_columns import RecordColumns
from stromboli.simulator.reports.written_files import whole_file
from stromboli.simulator.runs.run_record import RunRecord

Row = Iterable[Any]
MOST_RESOURCES = 50
"""Resources that get a column: those of the cluster first."""
FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""What makes a spreadsheet compute a text instead of showing it."""
PARTS = {
    "queues": "queue",
    "users": "user",
    "gangs": "gang",
    "requests": "request",
    "utilisation_by_resource": "resource",
}
"""The tables within a summary, and what their rows are."""


def write_csv(record: RunRecord, folder: Path) -> list[Path]:
    """Write all files into a folder, which is made if need be; which ones."""
    folder.mkdir(parents=True, exist_ok=True)
    tables = {
        "jobs": _jobs(record),
        "pods": _pods(record),
        "samples": _samples(record),
        "samples-by-queue": _samples_by_queue(record),
        "evictions": _evictions(record),
        "summary": summary_rows(summary(record)),
    }
    paths = []
    for name, rows in tables.items():
        paths.append(folder / f"{name}.csv")
        with whole_file(paths[-1]) as file:
            text = io.TextIOWrapper(file, "utf-8", newline="", errors="backslashreplace")
            csv.writer(text).writerows(map(_guarded, rows))
            text.flush()
            text.detach()
    return paths


def _guarded(row: Row) -> list[Any]:
    """Texts that a spreadsheet would take for a formula get an apostrophe; numbers stay exact."""
    return [_cell(value) for value in row]


def _cell(value: Any) -> Any:
    if isinstance(value, str):
        return f"'{value}" if value.startswith(FORMULA) else value
    if isinstance(value, float | np.floating):
        return "" if np.isnan(value) else repr(float(value))
    return value


def _jobs(record: RunRecord) -> Iterator[Row]:
    columns = RecordColumns(record)
    resources = _resources(record)
    yield [
        *("name", "queue", "user", "submitted", "started", "first_started", "ended", "wait", "run_time"),
        *("time_limit", "bounded_slowdown", "pods", "evictions", "lost_work", "dropped"),
        *(f"request {name}" for name in resources),
    ]
    for job, wait, slowdown in zip(
        record.jobs, columns.wait.tolist(), columns.bounded_slowdown.tolist(), strict=True
    ):
        yield [
            *(job.name, job.queue, job.user, job.submitted, job.started, job.first_started, job.ended, wait),
            *(
                job.run_time,
                job.time_limit,
                slowdown,
                job.pods,
                job.evictions,
                job.lost_work,
                int(job.dropped),
            ),
            *(job.requests.get(name, 0.0) for name in resources),
        ]


def _pods(record: RunRecord) -> Iterator[Row]:
    yield ["pod", "job", "node", "started", "ended", "outcome"]
    for pod in record.pods:
        yield [pod.pod, record.jobs[pod.job].name, pod.node, pod.started, pod.ended, pod.outcome]


def _samples(record: RunRecord) -> Iterator[Row]:
    resources = _resources(record)
    yield ["time", "waiting", "running", "fragmentation", *(f"used {name}" for name in resources)]
    for sample in record.samples:
        used = (sample.used.get(name, 0.0) for name in resources)
        yield [sample.time, sample.waiting, sample.running, sample.fragmentation, *used]


def _samples_by_queue(record: RunRecord) -> Iterator[Row]:
    yield ["time", "queue", "resource", "used", "deserved"]
    for sample in record.samples:
        for queue in dict.fromkeys([*sample.used_by_queue, *sample.deserved_by_queue]):
            used = sample.used_by_queue.get(queue, {})
            deserved = sample.deserved_by_queue.get(queue, {})
            for resource in dict.fromkeys([*used, *deserved]):
                yield [sample.time, queue, resource, used.get(resource, 0.0), deserved.get(resource)]


def _evictions(record: RunRecord) -> Iterator[Row]:
    yield ["time", "pod", "job", "node", "lost_work", "reason", "beneficiary"]
    for row in record.evictions:
        job = record.jobs[row.job].name
        yield [row.time, row.pod, job, row.node, row.lost_work, row.reason, row.beneficiary]


def summary_rows(measures: Summary) -> Iterator[Row]:
    """A measure in each row; those of a queue or a user say of which."""
    yield ["of", "name", "measure", "value"]
    for measure, value in measures.items():
        if measure not in PARTS:
            yield ["run", "", measure, value]
    for part, kind in PARTS.items():
        for name, row in measures[part].items():
            inner = row.items() if isinstance(row, dict) else [("utilisation", row)]
            yield from ([kind, name, measure, value] for measure, value in inner)


def _resources(record: RunRecord) -> list[str]:
    names = dict.fromkeys(record.capacity)
    for job in record.jobs:
        names.update(dict.fromkeys(job.requests))
        if len(names) > MOST_RESOURCES:
            break
    return list(names)[:MOST_RESOURCES]
