"""What happened over time: utilisation, the queue, evictions and fragmentation."""

from __future__ import annotations

from collections import Counter

import numpy as np

from stromboli.simulator.reports.interval_cells import Cells, measured_time
from stromboli.simulator.reports.measure_titles import duration
from stromboli.simulator.reports.page.chart_scales import Scale, amounts, clock, clock_text, shares
from stromboli.simulator.reports.page.figure import figure
from stromboli.simulator.reports.page.markup import Markup, shortened
from stromboli.simulator.reports.page.svg_chart import SvgChart, colour, legend, thinned
from stromboli.simulator.reports.record_columns import Floats, RecordColumns

CELLS = 360
BARS = 90
REASONS = 5
RESOURCES = 4
"""Resources that are drawn together."""


def utilisation_chart(columns: RecordColumns) -> Markup:
    """What pods held of the cluster, the mean over short stretches of time."""
    title = "Utilisation over time"
    cells, rows = measured_time(columns, CELLS), columns.intervals
    names = columns.drawn_resources[:RESOURCES]
    if columns.makespan <= 0 or not names or not rows.start.size:
        return figure(title, "No job held anything of the cluster.")
    means = {name: cells.means(rows.start, rows.end, columns.held(name))[0] for name in names}
    chart = SvgChart(_time(columns), shares(max(1.0, *(float(mean.max()) for mean in means.values()))))
    chart.axes()
    for place, (name, mean) in enumerate(means.items()):
        words = f"{name}: {100 * mean.mean():.1f} % on average, {100 * mean.max():.1f} % at most"
        chart.steps(cells.edges[:-1], mean, colour(place), words, area=place == 0)
    note = f"Share of the cluster that pods held, averaged over {duration(columns.makespan / CELLS)} each."
    described = "; ".join(f"{name} {100 * mean.mean():.1f} % on average" for name, mean in means.items())
    return figure(title, note, _legend(names), chart.svg(title, described))


def queue_chart(columns: RecordColumns) -> Markup:
    """Jobs that wait and jobs that run."""
    title = "Waiting and running jobs"
    if not columns.record.jobs or columns.makespan <= 0:
        return figure(title, "No job was submitted, or all ended at once.")
    times, waiting, running = _job_counts(columns)
    highest = float(max(waiting.max(), running.max(), 1.0))
    chart = SvgChart(_time(columns), amounts(highest))
    chart.axes()
    for place, (name, counts) in enumerate((("waiting", waiting), ("running", running))):
        chart.steps(
            *thinned(times, counts, CELLS * 2),
            colour(place),
            f"{name}: {counts.max():,.0f} at most",
            area=not place,
        )
    described = f"at most {waiting.max():,.0f} waited and {running.max():,.0f} ran"
    return figure(title, f"Of {len(columns.record.jobs):,} jobs {described} at the same time.",
                  _legend(["waiting", "running"]), chart.svg(title, described))  # fmt: skip


def _job_counts(columns: RecordColumns) -> tuple[Floats, Floats, Floats]:
    """From samples; a record without has jobs wait until they start, and run until they end."""
    samples = [sample for sample in columns.record.samples if columns.begin <= sample.time <= columns.end]
    if samples:
        return (
            np.array([sample.time for sample in samples]),
            np.array([sample.waiting for sample in samples], np.float64),
            np.array([sample.running for sample in samples], np.float64),
        )
    end = columns.end
    started = np.where(np.isnan(columns.started), end, columns.started)
    ended = np.where(np.isnan(columns.ended), end, columns.ended)
    cells, stays = measured_time(columns, CELLS), np.ones(started.size) * ~columns.dropped
    waiting = cells.means(columns.submitted, started, stays)[0]
    return cells.edges[:-1], waiting, cells.means(started, ended, stays)[0]


def eviction_chart(columns: RecordColumns) -> Markup | None:
    """Work that was lost with pods that had to go, by the moment of the eviction."""
    title = "Evictions and the work they lost"
    evictions = columns.record.evictions
    if not evictions or columns.makespan <= 0:
        return None
    cells = Cells(columns.begin, columns.end, BARS)
    times = np.array([eviction.time for eviction in evictions])
    lost = np.maximum([eviction.lost_work for eviction in evictions], 0.0) / 3600
    hours, _ = np.histogram(times, cells.edges, weights=lost)
    counts, _ = np.histogram(times, cells.edges)
    chart = SvgChart(_time(columns), amounts(float(hours.max()), " h"))
    chart.axes()
    places, floor = chart.at_x(cells.edges), chart.at_y(0.0)
    for place in np.flatnonzero(counts):
        top = min(float(chart.at_y(float(hours[place]))), float(floor) - 1.0)
        since = clock_text(round(cells.edges[place]))
        words = f"{counts[place]:,} evictions, {hours[place]:,.1f} pod-hours lost, from {since}"
        width = max(float(places[place + 1] - places[place]) - 1.0, 1.0)
        chart.box(float(places[place]), top, width, float(floor) - top, "fill s2", words)
    reasons = Counter(eviction.reason or "no reason given" for eviction in evictions).most_common(REASONS)
    listed = "; ".join(f"{shortened(reason, 80)} ({count:,})" for reason, count in reasons)
    described = f"{len(evictions):,} pods were evicted, {lost.sum():,.1f} pod-hours of work were lost"
    note = f"Pod-hours lost over time. {described}. Most frequent reasons: {listed}."
    return figure(title, note, chart.svg(title, described))


def fragmentation_chart(columns: RecordColumns) -> Markup | None:
    """The share of GPUs that typical tasks cannot use, where the policy computed it."""
    samples = [sample for sample in columns.record.samples if sample.fragmentation is not None]
    if not samples:
        return None
    title = "Fragmentation over time"
    times = np.array([sample.time for sample in samples])
    values = np.array([sample.fragmentation for sample in samples], np.float64)
    chart = SvgChart(clock(columns.begin, max(columns.end, float(times[-1]))), shares(float(values.max())))
    chart.axes()
    described = f"{100 * values[-1]:.1f} % at the end, {100 * values.max():.1f} % at most"
    chart.steps(*thinned(times, values, CELLS * 2), "s1", described, area=True)
    note = f"Share of GPUs that are free, and that typical tasks cannot use: {described}."
    return figure(title, note, chart.svg(title, described))


def _time(columns: RecordColumns) -> Scale:
    return clock(columns.begin, columns.end)


def _legend(names: list[str]) -> Markup:
    return legend((colour(place), name) for place, name in enumerate(names)) if len(names) > 1 else Markup("")
