"""What queues and users deserved, to hold against what they got."""

from __future__ import annotations

import numpy as np

from stromboli.simulator.reports.interval_cells import measured_time
from stromboli.simulator.reports.record_columns import Floats, Integers, RecordColumns

CELLS = 200
FEWEST_CELLS = 20
LARGEST_TABLE = 2_000_000
"""Cells times groups: with many groups, the time is cut more coarsely."""


def max_min(demand: Floats, room: float = 1.0) -> Floats:
    """Max-min fair shares of `room` along the last axis: nobody gets more than demanded, the others get equal parts.

    With demands in ascending order, the level of those from i on is what is left after the smaller ones, divided
    among them; the first whose demand exceeds it marks the level for all.
    """
    count = demand.shape[-1]
    ordered = np.sort(demand, axis=-1)
    before = np.cumsum(ordered, axis=-1) - ordered
    level = (room - before) / np.arange(count, 0, -1)
    too_much = ordered > level
    first = np.argmax(too_much, axis=-1)[..., None]
    limit = np.where(too_much.any(axis=-1, keepdims=True), np.take_along_axis(level, first, axis=-1), np.inf)
    return np.minimum(demand, limit)


def fair_share(columns: RecordColumns, resource: str, group: Integers, groups: int) -> Floats:
    """What equal groups deserved of the cluster on average: max-min fairness over time among those with jobs.

    A group's demand at a moment is what its jobs that wait or run ask for.
    """
    if not groups:
        return np.zeros(0)
    cells = measured_time(columns, int(np.clip(LARGEST_TABLE // groups, FEWEST_CELLS, CELLS)))
    present = ~columns.dropped
    gone = np.where(np.isnan(columns.ended), columns.end, columns.ended)
    demand = cells.means(
        columns.submitted[present], gone[present], columns.amount(resource)[present], group[present], groups
    )
    shares: Floats = max_min(demand.T).mean(axis=0)
    return shares


def deserved_by_queue(columns: RecordColumns, resource: str) -> dict[str, float]:
    """What the policy says that queues deserve of the cluster, averaged over time; empty where it says nothing."""
    samples = columns.record.samples
    capacity = columns.record.capacity.get(resource, 0.0)
    if not samples or capacity <= 0 or columns.makespan <= 0:
        return {}
    times = np.array([sample.time for sample in samples] + [columns.end])
    lasts = np.maximum(np.diff(np.clip(times, columns.begin, columns.end)), 0.0)
    deserved: dict[str, float] = {}
    for sample, seconds in zip(samples, lasts, strict=True):
        for queue, amounts in sample.deserved_by_queue.items():
            share = min(amounts.get(resource, 0.0) / capacity, 1.0)
            deserved[queue] = deserved.get(queue, 0.0) + share * float(seconds) / columns.makespan
    return deserved
