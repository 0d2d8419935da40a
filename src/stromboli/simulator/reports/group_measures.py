"""Measures of parts of a run: queues, users, gangs by size."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from stromboli.simulator.reports.fair_shares import deserved_by_queue, fair_share
from stromboli.simulator.reports.record_columns import Booleans, Floats, Integers, RecordColumns, codes, sums

Measures = dict[str, Any]
MOST_GROUPS = 100
"""Queues or users that a summary lists: those with the most resource-time."""


def mean(values: Floats) -> float | None:
    """Of what is known; None where nothing is."""
    known = values[np.isfinite(values)]
    return float(known.mean()) if known.size else None


def percentile(values: Floats, percent: float) -> float | None:
    known = values[np.isfinite(values)]
    return float(np.percentile(known, percent)) if known.size else None


def largest(values: Floats) -> float | None:
    known = values[np.isfinite(values)]
    return float(known.max()) if known.size else None


def queue_measures(columns: RecordColumns) -> dict[str, Measures]:
    """By queue, with the share of the cluster that it had and what the policy says that it deserved."""
    labels, group = codes([job.queue for job in columns.record.jobs])
    deserved = deserved_by_queue(columns, columns.resources[0]) if columns.resources else {}
    return dict(_groups(columns, labels, group, deserved))


def user_measures(columns: RecordColumns) -> dict[str, Measures]:
    """By user, with the share of the cluster that each had and what equal users deserved by max-min fairness."""
    labels, group = codes([job.user for job in columns.record.jobs])
    if labels in ([], [""]):
        return {}
    deserved: dict[str, float] = {}
    if columns.resources:
        shares = fair_share(columns, columns.resources[0], group, len(labels))
        deserved = dict(zip(labels, shares.tolist(), strict=True))
    return dict(_groups(columns, labels, group, deserved))


def gang_measures(columns: RecordColumns) -> dict[str, Measures]:
    """Waits by the number of pods that start together, in classes that double: 1, 2, 3-4, 5-8."""
    return _size_classes(columns, columns.pods)


def request_measures(columns: RecordColumns) -> dict[str, Measures]:
    """Waits by how much jobs ask for of the resource that matters most, in the same classes."""
    if not columns.resources:
        return {}
    resource = columns.resources[0]
    return _size_classes(columns, columns.amount(resource) * columns.record.capacity[resource])


def _groups(
    columns: RecordColumns, labels: list[str], group: Integers, deserved: dict[str, float]
) -> Iterator[tuple[str, Measures]]:
    used, seconds = _usage(columns, group, len(labels))
    evictions = sums(group, np.array([job.evictions for job in columns.record.jobs], np.float64), len(labels))
    order = np.argsort(group, kind="stable")
    starts = np.searchsorted(group[order], np.arange(len(labels) + 1))
    total = seconds.sum()
    for place in np.argsort(-seconds, kind="stable")[:MOST_GROUPS]:
        label = labels[place]
        rows = order[starts[place] : starts[place + 1]]
        if (columns.submitted[rows] > columns.end).all():
            continue  # an interrupted run did not come to them: neither queue nor user is known
        yield (
            label,
            _waits(columns, rows)
            | {
                "used": float(used[place]),
                "share": float(seconds[place] / total) if total > 0 else 0.0,
                "deserved": deserved.get(label),
                "evictions": int(evictions[place]),
            },
        )


def _usage(columns: RecordColumns, group: Integers, groups: int) -> tuple[Floats, Floats]:
    """By group: the mean share of the cluster that it had, and the same times seconds."""
    if not columns.resources:
        return np.zeros(groups), np.zeros(groups)
    seconds = sums(group[columns.intervals.job], columns.resource_time(columns.resources[0]), groups)
    return (seconds / columns.makespan if columns.makespan > 0 else np.zeros(groups)), seconds


def _waits(columns: RecordColumns, rows: Integers | Booleans) -> Measures:
    wait = columns.wait[rows]
    return {
        "jobs": int(wait.size),
        "started": int(np.isfinite(wait).sum()),
        "mean_wait_s": mean(wait),
        "median_wait_s": percentile(wait, 50),
        "p95_wait_s": percentile(wait, 95),
        "max_wait_s": largest(wait),
        "mean_bounded_slowdown": mean(columns.bounded_slowdown[rows]),
    }


def _size_classes(columns: RecordColumns, size: Floats) -> dict[str, Measures]:
    if not size.size:
        return {}
    exponent = np.ceil(np.log2(np.maximum(size, 1.0))).astype(np.int64)
    exponent[size == 0] = -1
    return {_class_name(power): _waits(columns, exponent == power) for power in np.unique(exponent)}


def _class_name(power: int) -> str:
    """0, 1, 2, 3-4, 5-8, 9-16."""
    return str(int(2.0**power)) if power < 2 else f"{2 ** (power - 1) + 1}-{2**power}"
