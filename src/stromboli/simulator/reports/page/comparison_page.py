"""The page of a comparison: a table with differences, every run as a dot, and distributions on top of each other."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import numpy as np

from stromboli.simulator.reports.comparison.configurations import Configuration
from stromboli.simulator.reports.comparison.difference_texts import difference_text, mean_text, p_text
from stromboli.simulator.reports.comparison.run_comparison import Comparison
from stromboli.simulator.reports.measure_titles import NONE, Measure, Unit, duration, value_text
from stromboli.simulator.reports.page.chart_scales import Scale, amounts, clock, shares, slowdowns, waits
from stromboli.simulator.reports.page.figure import figure
from stromboli.simulator.reports.page.html_document import document, table
from stromboli.simulator.reports.page.markup import Markup, element
from stromboli.simulator.reports.page.svg_chart import SvgChart, colour, legend
from stromboli.simulator.reports.record_columns import Floats
from stromboli.simulator.reports.written_files import whole_file

MOST_DRAWN = 24
"""Configurations in a chart."""
ROW, EDGES = 26.0, 44.0


def write_comparison(comparison: Comparison, path: Path) -> None:
    """Write the page of a comparison."""
    text = comparison_page(comparison)
    with whole_file(path) as file:
        file.write(text.encode("utf-8", "backslashreplace"))


@np.errstate(all="ignore")
def comparison_page(comparison: Comparison) -> str:
    """The page as text."""
    names = [configuration.name for configuration in comparison.configurations]
    title = " / ".join(names) if len(names) < 5 else f"{len(names)} configurations"
    runs = sum(len(configuration.runs) for configuration in comparison.configurations)
    lines = [element("p", f"{runs:,} runs. Differences are from {names[0]}.")]
    lines += [element("p", note, class_="warn") for note in comparison.notes]
    header = element("header", element("h1", f"Comparison: {title}"), *lines)
    main = [
        measure for measure, row in comparison.entries.items() if measure.main and any(e.mean for e in row)
    ]
    sections = [
        _table("Measures", comparison, main),
        _distributions(comparison, "Waiting times", "wait"),
        _distributions(comparison, "Bounded slowdown", "slowdown"),
        *(_dots(comparison, measure) for measure in main if measure.better),
        _table("All measures", comparison, list(comparison.entries)),
        _settings(comparison),
    ]
    return document(f"Comparison: {title}", header, sections)


def _table(title: str, comparison: Comparison, measures: Iterable[Measure]) -> Markup:
    names = [configuration.name for configuration in comparison.configurations]
    last = ("p",) if comparison.is_tested else ()
    against = f"against {names[0]}"
    titles = ["", names[0], *(text for name in names[1:] for text in (name, against, *last))]
    rows = []
    for measure in measures:
        row = comparison.entries[measure]
        cells = [measure.title, mean_text(row[0], measure)]
        for entry in row[1:]:
            cells += [
                mean_text(entry, measure),
                difference_text(row[0], entry, measure, comparison.confidence),
                *([p_text(entry)] if last else []),
            ]
        rows.append(cells)
    return figure(title, _legend(comparison), table(titles, rows), wide=True)


def _legend(comparison: Comparison) -> str:
    if not comparison.is_tested:
        return f"Means over runs, and how they differ from {comparison.configurations[0].name}."
    percent = f"{100 * comparison.confidence:g} %"
    note = f"Mean ± standard deviation over runs; in brackets the {percent} confidence interval of the difference; "
    return note + f"* significant at {percent} ({comparison.test.value} test, p corrected after Holm)."


def _distributions(comparison: Comparison, title: str, what: str) -> Markup:
    """Of all runs of a configuration together."""
    curves = [
        (colour(place), configuration.name, _pooled(configuration, what))
        for place, configuration in enumerate(comparison.configurations[:MOST_DRAWN])
    ]
    known = [curve for curve in curves if curve[2].size]
    if not known:
        return figure(title, "No job started, so there is nothing to show.")
    highest = max(float(curve[2][-1]) for curve in known)
    chart = SvgChart(waits(highest) if what == "wait" else slowdowns(highest), shares())
    chart.axes()
    for class_, name, values in known:
        chart.line(values, np.linspace(0, 1, values.size), class_, name)
    described = "; ".join(
        f"{name}: half at most {_text(what, float(np.median(row)))}" for _, name, row in known[:8]
    )
    swatches = legend(curve[:2] for curve in known)
    return figure(
        title, f"Share of jobs with at most this; {described}.", swatches, chart.svg(title, described)
    )


def _text(what: str, value: float) -> str:
    return duration(value) if what == "wait" else f"{value:.2f}"


def _pooled(configuration: Configuration, what: str) -> Floats:
    parts = [run.waits if what == "wait" else run.slowdowns for run in configuration.runs]
    values = np.sort(np.concatenate([np.zeros(0), *parts]))
    return (
        values[np.linspace(0, values.size - 1, min(values.size, 401)).astype(np.int64)]
        if values.size
        else values
    )


def _dots(comparison: Comparison, measure: Measure) -> Markup:
    """Every run as a dot, the mean as a mark."""
    rows = list(zip(comparison.configurations, comparison.entries[measure], strict=True))[:MOST_DRAWN]
    values = [configuration.values(measure.key) for configuration, _ in rows]
    highest = max((float(row.max()) for row in values if row.size), default=0.0)
    chart = SvgChart(_scale(measure, highest), amounts(1), EDGES + ROW * len(rows), left=170.0)
    chart.axes([configuration.name for configuration, _ in rows])
    for place, ((configuration, entry), row) in enumerate(zip(rows, values, strict=True)):
        y = chart.row_middle(place, len(rows))
        words = f"{configuration.name}: {mean_text(entry, measure)}"
        for x in chart.at_x(row)[:200]:
            chart.box(float(x) - 3.5, y - 3.5, 7.0, 7.0, f"pale {colour(place)}", words)
        if entry.mean is not None:
            chart.box(float(chart.at_x(entry.mean)) - 1.5, y - 9, 3.0, 18.0, f"fill {colour(place)}", words)
    better = "More is better." if measure.better > 0 else "Less is better."
    described = "; ".join(
        f"{configuration.name} {value_text(entry.mean, measure.unit)}" for configuration, entry in rows[:8]
    )
    return figure(measure.title, f"{better} {described}.", chart.svg(measure.title, described))


def _scale(measure: Measure, highest: float) -> Scale:
    if measure.unit is Unit.SHARE:
        return shares(highest)
    return clock(0.0, highest * 1.05 or 1.0) if measure.unit is Unit.SECONDS else amounts(highest)


def _settings(comparison: Comparison) -> Markup:
    configurations = comparison.configurations
    keys = dict.fromkeys(key for configuration in configurations for key in configuration.settings)
    rows = [
        [key, *(str(configuration.settings.get(key, NONE)) for configuration in configurations)]
        for key in keys
    ]
    rows.append(
        [
            "seeds",
            *(
                ", ".join(str(run.seed) for run in configuration.runs[:100])
                for configuration in configurations
            ),
        ]
    )
    titles = ["", *(configuration.name for configuration in configurations)]
    return figure("Settings", "What the runs were asked for.", table(titles, rows, "text"), wide=True)
