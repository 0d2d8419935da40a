"""How waits and slowdowns are distributed over jobs, and over gangs by size."""

from __future__ import annotations

from typing import Any

import numpy as np

from stromboli.simulator.reports.measure_titles import duration, factor
from stromboli.simulator.reports.measures import Summary
from stromboli.simulator.reports.page.chart_scales import Scale, amounts, shares, slowdowns, waits
from stromboli.simulator.reports.page.figure import figure
from stromboli.simulator.reports.page.markup import Markup, element
from stromboli.simulator.reports.page.svg_chart import SvgChart, colour, legend
from stromboli.simulator.reports.record_columns import Floats, RecordColumns, codes

POINTS = 400
QUEUES = 4
"""Queues that have a curve of their own beside that of all jobs."""
ROW, EDGES = 26.0, 44.0


def wait_chart(columns: RecordColumns) -> Markup | None:
    """The share of jobs that waited at most so long; None where every job started at once."""
    known = columns.wait[np.isfinite(columns.wait)]
    if known.size and not known.any():
        return None
    note = "Share of the started jobs that waited at most so long (logarithmic)."
    return _distribution(columns, columns.wait, "Waiting times", note, waits)


def slowdown_chart(columns: RecordColumns) -> Markup | None:
    """The share of jobs that were slowed down by at most this factor; None where jobs never end."""
    if not np.isfinite(columns.bounded_slowdown).any():
        return None
    note = "Share of jobs with at most this bounded slowdown: max(1, (wait + run) / max(run, 10 s))."
    return _distribution(columns, columns.bounded_slowdown, "Bounded slowdown", note, slowdowns)


def _distribution(columns: RecordColumns, values: Floats, title: str, note: str, scale: Any) -> Markup:
    known = values[np.isfinite(values)]
    if not known.size:
        return figure(title, "No job started.")
    x: Scale = scale(float(known.max()))
    chart = SvgChart(x, shares())
    chart.axes()
    curves = [("s1", "all jobs", known), *_curves_by_queue(columns, values)]
    if len(curves) > 1:
        curves[0] = ("s0", *curves[0][1:])
    for class_, name, curve in curves:
        chart.line(*_cumulative(curve, x), class_, f"{name}: {curve.size:,} jobs", area=curve is known)
    text = duration if scale is waits else factor
    half, most, nearly_all = (text(float(value)) for value in np.percentile(known, [50, 95, 99]))
    described = f"half at most {half}, 95 % at most {most}, 99 % at most {nearly_all}"
    swatches = legend(curve[:2] for curve in curves) if len(curves) > 1 else Markup("")
    return figure(title, f"{note} Here: {described}.", swatches, chart.svg(title, described))


def _curves_by_queue(columns: RecordColumns, values: Floats) -> list[tuple[str, str, Floats]]:
    """A few queues, each in its colour."""
    labels, group = codes([job.queue for job in columns.record.jobs])
    if not 1 < len(labels) <= QUEUES:
        return []
    rows = [values[(group == place) & np.isfinite(values)] for place in range(len(labels))]
    return [(colour(place), f"queue {labels[place]}", row) for place, row in enumerate(rows) if row.size]


def _cumulative(values: Floats, scale: Scale) -> tuple[Floats, Floats]:
    """The cumulative distribution at points that are evenly spread over the chart, as steps."""
    ordered = np.sort(values)
    if scale.log:
        points = np.expm1(np.linspace(np.log1p(scale.low), np.log1p(scale.high), POINTS))
    else:
        points = np.linspace(scale.low, scale.high, POINTS)
    points[-1] = max(points[-1], float(ordered[-1]))
    return points, np.searchsorted(ordered, points * (1 + 1e-9), side="right") / ordered.size


def gang_chart(measures: Summary) -> Markup | None:
    """Waits by the size of gangs; where every job is a pod, by what jobs ask for. None where none are long."""
    by_pods = len(measures["gangs"]) > 1 or not measures["requests"]
    rows = measures["gangs"] if by_pods else measures["requests"]
    title = "Waiting times by gang size" if by_pods else "Waiting times by request"
    size = "pods" if by_pods else str(measures["utilisation_of"]).rpartition("/")[2]
    started = {name: row for name, row in rows.items() if row["started"]}
    longest = max((row["p95_wait_s"] for row in started.values()), default=0.0)
    if not longest:
        return None
    names = list(started)
    chart = SvgChart(waits(longest), amounts(1), EDGES + ROW * len(started), left=110.0)
    chart.axes(names)
    for place, (name, row) in enumerate(started.items()):
        y = chart.row_middle(place, len(started))
        median, mean, most = (
            float(chart.at_x(row[key])) for key in ("median_wait_s", "mean_wait_s", "p95_wait_s")
        )
        words = (
            f"{name} {size}, {row['jobs']:,} jobs: half wait at most {duration(row['median_wait_s'])}, "
            f"95 % at most {duration(row['p95_wait_s'])}, mean {duration(row['mean_wait_s'])}"
        )
        chart.box(median, y - 6, max(most - median, 2.0), 12.0, "pale s1", words)
        chart.box(median - 2, y - 8, 4.0, 16.0, "fill s1", words)
        chart.add(element("circle", element("title", words), cx=mean, cy=y, r=4.0, class_="ring"))
    swatches = legend((("fill s1", "median"), ("pale s1", "up to 95 % of jobs"), ("ring", "mean")))
    count = sum(row["started"] for row in started.values())
    note = (
        f"Of {count:,} jobs that started, by {'number of pods' if by_pods else f'{size} that they ask for'}."
    )
    described = f"{len(started)} classes from {names[0]} to {names[-1]} {size}, up to {duration(longest)}"
    return figure(title, note, swatches, chart.svg(title, described))
