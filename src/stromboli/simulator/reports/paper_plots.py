"""Plots for papers as PNG, SVG or PDF files, by matplotlib, which comes with the extra `stromboli[plots]`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from stromboli.simulator.reports.comparison.run_comparison import Comparison
from stromboli.simulator.reports.interval_cells import measured_time
from stromboli.simulator.reports.measure_titles import DAY, HOUR, MINUTE, Measure, Unit
from stromboli.simulator.reports.measures import Summary, summary
from stromboli.simulator.reports.page.chart_scales import Scale, slowdowns, waits
from stromboli.simulator.reports.record_columns import Floats, RecordColumns
from stromboli.simulator.reports.written_files import whole_file
from stromboli.simulator.runs.run_record import RunRecord

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SIZE = (3.4, 2.2)
"""Inches: a column of a paper."""
STYLE: Any = {
    "font.size": 8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "xtick.minor.size": 0,
    "ytick.minor.size": 0,
    "axes.axisbelow": True,
    "grid.linewidth": 0.4,
    "grid.color": "0.88",
    "lines.linewidth": 1.2,
    "legend.frameon": False,
    "legend.fontsize": 7,
    "savefig.dpi": 300,
    "svg.hashsalt": "stromboli",
    "svg.fonttype": "none",
    "pdf.fonttype": 42,
    "text.parse_math": False,
}
COLOURS = ("#2a78d6", "#e0602b", "#0f7f5c", "#d8a200", "#d070a8", "#56b0dc", "#44337f", "#7c3f1d")
"""Those of the page: told apart by readers who do not see red or green, too."""
CELLS = 360
ROWS = 12
"""Queues, users or configurations in a plot."""


def plot_run(record: RunRecord, folder: Path, format: str) -> list[Path]:
    """Utilisation, the queue, waits, slowdowns, shares and waits by size, a file each; which files."""
    return _draw(_run_figures, (record,), folder, format)


def plot_comparison(comparison: Comparison, folder: Path, format: str) -> list[Path]:
    """Waits and slowdowns of all configurations on top of each other, and a plot for each measure that matters."""
    return _draw(_comparison_figures, (comparison,), folder, format)


def _draw(figures: Any, arguments: tuple[Any, ...], folder: Path, format: str) -> list[Path]:
    import matplotlib as mpl

    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    with mpl.rc_context(STYLE), np.errstate(all="ignore"):
        for name, figure in figures(*arguments):
            paths.append(folder / f"{name}.{format}")
            date = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}.get(format, {})
            with whole_file(paths[-1]) as file:
                figure.savefig(file, format=format, metadata=date)
    return paths


def _figure() -> tuple[Figure, Any]:
    from matplotlib.figure import Figure

    figure = Figure(figsize=SIZE, layout="constrained")
    axes = figure.subplots()
    axes.set_prop_cycle(color=COLOURS)
    return figure, axes


def _run_figures(record: RunRecord) -> Iterator[tuple[str, Figure]]:
    columns, measures = RecordColumns(record), summary(record)
    if columns.makespan > 0:
        yield "utilisation", _utilisation(columns)
        yield "queue", _queue(columns)
    for name, values, text in (
        ("wait", columns.wait, "Wait"),
        ("slowdown", columns.bounded_slowdown, "Bounded slowdown"),
    ):
        if (known := np.sort(values[np.isfinite(values)])).size:
            yield name, _distribution({"": known}, text)
    for name in ("queues", "users"):
        if measures[name]:
            yield name, _shares(measures, name)
    if any(row["started"] for row in measures["gangs"].values()):
        yield "gangs", _sizes(measures)


def _utilisation(columns: RecordColumns) -> Figure:
    figure, axes = _figure()
    cells, rows = measured_time(columns, CELLS), columns.intervals
    scale, unit = _time_unit(columns.makespan)
    for name in columns.drawn_resources[:4]:
        axes.step(
            cells.edges[:-1] / scale,
            100 * cells.means(rows.start, rows.end, columns.held(name))[0],
            label=name,
        )
    axes.set(xlabel=f"Time [{unit}]", ylabel="Utilisation [%]", ylim=(0, None))
    if len(axes.lines) > 1:
        axes.legend()
    return figure


def _queue(columns: RecordColumns) -> Figure:
    figure, axes = _figure()
    scale, unit = _time_unit(columns.makespan)
    cells, end = measured_time(columns, CELLS), columns.end
    started = np.where(np.isnan(columns.started), end, columns.started)
    ended = np.where(np.isnan(columns.ended), end, columns.ended)
    stays = np.ones(started.size) * ~columns.dropped
    for name, begin, until in (("waiting", columns.submitted, started), ("running", started, ended)):
        axes.step(cells.edges[:-1] / scale, cells.means(begin, until, stays)[0], label=name)
    axes.set(xlabel=f"Time [{unit}]", ylabel="Jobs", ylim=(0, None))
    axes.legend()
    return figure


def _distribution(curves: dict[str, Floats], title: str) -> Figure:
    """Cumulative distributions by the logarithm; waits of 0 stand at the left end."""
    figure, axes = _figure()
    for name, values in curves.items():
        axes.step(values, 100 * np.arange(1, values.size + 1) / values.size, where="post", label=name)
    highest = max(float(values[-1]) for values in curves.values())
    scale = waits(highest) if title == "Wait" else slowdowns(highest)
    axes.set_xscale("function", functions=(np.log1p, np.expm1))
    axes.set_xticks(*_labelled(scale))
    axes.set(xlabel=title, xlim=(scale.low, scale.high), ylabel="Jobs [%]", ylim=(0, 100))
    if len(curves) > 1:
        axes.legend()
    return figure


def _shares(measures: Summary, part: str) -> Figure:
    figure, axes = _figure()
    rows = dict(list(measures[part].items())[:ROWS])
    places = np.arange(len(rows))
    axes.barh(places, [100 * row["used"] for row in rows.values()], 0.6, label="had")
    deserved = [
        (place, row["deserved"]) for place, row in enumerate(rows.values()) if row["deserved"] is not None
    ]
    if deserved:
        marks = np.array(deserved)
        axes.plot(100 * marks[:, 1], marks[:, 0], "k|", markersize=9, label="deserved")
        axes.legend()
    axes.set_yticks(places, [name or "-" for name in rows])
    axes.invert_yaxis()
    axes.set(xlabel=f"Share of {measures['utilisation_of']} [%]")
    return figure


def _sizes(measures: Summary) -> Figure:
    figure, axes = _figure()
    rows = measures["gangs"] if len(measures["gangs"]) > 1 else measures["requests"] or measures["gangs"]
    started = {name: row for name, row in rows.items() if row["started"]}
    places = np.arange(len(started))
    middle = np.array([row["median_wait_s"] for row in started.values()])
    most = np.array([row["p95_wait_s"] for row in started.values()])
    axes.errorbar(
        places, middle, [np.zeros(places.size), most - middle], fmt="o", capsize=2, label="median to 95 %"
    )
    axes.plot(places, [row["mean_wait_s"] for row in started.values()], "x", label="mean")
    axes.set_yscale("function", functions=(np.log1p, np.expm1))
    axes.set_yticks(*_labelled(waits(float(most.max()))))
    axes.set_xticks(places, list(started), rotation=30 if places.size > 6 else 0)
    axes.set(
        xlabel="Pods" if rows is measures["gangs"] else str(measures["utilisation_of"]),
        ylabel="Wait",
        ylim=(0, None),
    )
    axes.legend()
    return figure


def _comparison_figures(comparison: Comparison) -> Iterator[tuple[str, Figure]]:
    shown = comparison.configurations[: len(COLOURS)]
    for name, title in (("wait", "Wait"), ("slowdown", "Bounded slowdown")):
        parts = {
            configuration.name: [run.waits if name == "wait" else run.slowdowns for run in configuration.runs]
            for configuration in shown
        }
        curves = {key: np.sort(np.concatenate([np.zeros(0), *rows])) for key, rows in parts.items()}
        if all(curve.size for curve in curves.values()):
            yield name, _distribution(curves, title)
    for measure in comparison.entries:
        if measure.main and measure.better and any(entry.mean for entry in comparison.entries[measure]):
            yield measure.key, _bars(comparison, measure)


def _bars(comparison: Comparison, measure: Measure) -> Figure:
    """Means with their standard deviation."""
    figure, axes = _figure()
    rows = list(zip(comparison.configurations, comparison.entries[measure], strict=True))[:ROWS]
    factor, unit = _bar_unit(measure, max(entry.mean or 0.0 for _, entry in rows))
    means = [factor * (entry.mean or 0.0) for _, entry in rows]
    errors = [factor * (entry.deviation or 0.0) for _, entry in rows]
    axes.bar(range(len(rows)), means, 0.6, yerr=errors if any(errors) else None, capsize=3)
    axes.set_xticks(
        range(len(rows)),
        [configuration.name for configuration, _ in rows],
        rotation=20 if len(rows) > 4 else 0,
    )
    axes.set(ylabel=f"{measure.title}{unit}", ylim=(0, None))
    return figure


def _bar_unit(measure: Measure, highest: float) -> tuple[float, str]:
    """What values are multiplied by, and the unit that they have then."""
    if measure.unit is Unit.SHARE:
        return 100.0, " [%]"
    if measure.unit is Unit.SECONDS:
        seconds, name = _time_unit(highest)
        return 1 / seconds, f" [{name}]"
    return 1.0, ""


def _labelled(scale: Scale) -> tuple[list[float], list[str]]:
    """Ticks that lie apart: half of them where they are many."""
    ticks = scale.ticks[:: 2 if len(scale.ticks) > 7 else 1]
    return [value for value, _ in ticks], [text for _, text in ticks]


def _time_unit(length: float) -> tuple[float, str]:
    for limit, scale, unit in ((2 * MINUTE, 1.0, "s"), (3 * HOUR, MINUTE, "min"), (3 * DAY, HOUR, "h")):
        if length < limit:
            return scale, unit
    return DAY, "d"
