"""The summary of a run: what people of the field compare schedulers by, from the record alone.

The measured time runs from the first submission to the last end, or to the end of the simulation where jobs have not
ended. Waits are those of jobs that started, until the run that counts began. Bounded slowdown = max(1, (wait + run) /
max(run, 10 s)). Utilisation = what pods held, times how long, divided by the capacity times the measured time.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from stromboli.simulator.reports.group_measures import (
    gang_measures,
    largest,
    mean,
    percentile,
    queue_measures,
    request_measures,
    user_measures,
)
from stromboli.simulator.reports.record_columns import BY_CARD, RecordColumns
from stromboli.simulator.runs.run_record import RunRecord
from stromboli.simulator.runs.run_recorder import MOST_POD_RECORDS

Summary = dict[str, Any]

HOUR = 3600.0


@np.errstate(all="ignore")
def summary(record: RunRecord) -> Summary:
    """All measures of a run as plain data. What cannot be known, such as a mean wait where no job started, is None."""
    columns = RecordColumns(record)
    measures = {
        "name": record.name,
        "seed": record.seed,
        "partial": record.partial,
        **_counts(columns),
        **_utilisation(columns),
        **_waits(columns),
        **_slowdowns(columns),
        **_evictions(columns),
        "cycles": record.cycles,
        "queues": queue_measures(columns),
        "users": user_measures(columns),
        "gangs": gang_measures(columns),
        "requests": request_measures(columns),
    }
    return measures | {name: value for name, value in record.measures.items() if name not in measures}


def _counts(columns: RecordColumns) -> Summary:
    ended, started = np.isfinite(columns.ended), np.isfinite(columns.started)
    expected = columns.submitted > columns.end
    waiting = ~started & ~ended & ~columns.dropped & ~expected
    hours = columns.makespan / HOUR
    oldest = columns.end - columns.submitted[waiting]
    return {
        "jobs": len(columns.record.jobs),
        "finished": int(ended.sum()),
        "running": int((started & ~ended).sum()),
        "waiting": int(waiting.sum()),
        "dropped": int(columns.dropped.sum()),
        "not_submitted": int(expected.sum()),
        "makespan_s": columns.makespan,
        "throughput_per_hour": float(ended.sum() / hours) if hours > 0 else None,
        "longest_still_waiting_s": largest(oldest),
    }


def _utilisation(columns: RecordColumns) -> Summary:
    """Of the resource that matters most, and of each."""
    shares = {name: _share_held(columns, name) for name in columns.resources}
    main = columns.resources[0] if columns.resources else None
    return {
        "utilisation": shares[main] if main else 0.0,
        "utilisation_of": main,
        "utilisation_by_resource": shares,
        "useful_utilisation": _share_held(columns, main, useful=True) if main else 0.0,
    }


def _share_held(columns: RecordColumns, resource: str, useful: bool = False) -> float:
    """What pods held of the cluster in the measured time; `useful` leaves out those that ran in vain."""
    if columns.makespan <= 0:
        return 0.0
    record, exact = columns.record, columns.record.measures.get(f"used_{resource}_s")
    if exact is not None and not useful and resource not in BY_CARD and len(record.pods) >= MOST_POD_RECORDS:
        return exact / record.capacity[resource] / columns.makespan  # runs of pods are left out
    times = columns.resource_time(resource)
    if useful:
        times = times[~columns.intervals.in_vain]
    return float(times.sum() / columns.makespan)


def _waits(columns: RecordColumns) -> Summary:
    wait = columns.wait
    return {
        "mean_wait_s": mean(wait),
        "median_wait_s": percentile(wait, 50),
        "p95_wait_s": percentile(wait, 95),
        "p99_wait_s": percentile(wait, 99),
        "max_wait_s": largest(wait),
        "mean_first_wait_s": mean(columns.first_wait),
        "mean_response_s": mean(columns.response),
    }


def _slowdowns(columns: RecordColumns) -> Summary:
    bounded = columns.bounded_slowdown
    return {
        "mean_slowdown": mean(columns.slowdown),
        "mean_bounded_slowdown": mean(bounded),
        "median_bounded_slowdown": percentile(bounded, 50),
        "p95_bounded_slowdown": percentile(bounded, 95),
        "p99_bounded_slowdown": percentile(bounded, 99),
        "max_bounded_slowdown": largest(bounded),
    }


def _evictions(columns: RecordColumns) -> Summary:
    """Pods that had to go, and the pod-seconds that were lost with them, by eviction or by a node that failed."""
    jobs, evictions = columns.record.jobs, columns.record.evictions
    lost = (sum(job.lost_work for job in jobs), sum(eviction.lost_work for eviction in evictions))
    evicted = (sum(job.evictions > 0 for job in jobs), len({eviction.job for eviction in evictions}))
    return {
        "evictions": max(sum(job.evictions for job in jobs), len(evictions)),
        "evicted_jobs": max(evicted),
        "lost_work_s": float(max(lost)),
    }
