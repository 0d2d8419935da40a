"""The page of a run: the figures that matter, charts, tables and settings, in one file that needs nothing else."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from stromboli.simulator.reports.measure_titles import MEASURES, Unit, amount_text, value_text
from stromboli.simulator.reports.measures import Summary, summary
from stromboli.simulator.reports.page.distribution_charts import gang_chart, slowdown_chart, wait_chart
from stromboli.simulator.reports.page.figure import figure
from stromboli.simulator.reports.page.html_document import document, table
from stromboli.simulator.reports.page.markup import Markup, element
from stromboli.simulator.reports.page.node_gantt import gantt_chart
from stromboli.simulator.reports.page.share_chart import share_chart
from stromboli.simulator.reports.page.time_charts import (
    eviction_chart,
    fragmentation_chart,
    queue_chart,
    utilisation_chart,
)
from stromboli.simulator.reports.record_columns import SLOTS, RecordColumns
from stromboli.simulator.reports.written_files import whole_file
from stromboli.simulator.runs.run_record import RunRecord

TILES = (
    "utilisation",
    "gpu_allocation",
    "fragmentation",
    "mean_wait_s",
    "mean_bounded_slowdown",
    "makespan_s",
    "jobs",
    "evictions",
)
DEFINED = "Waits are those of jobs that started; bounded slowdown = max(1, (wait + run) / max(run, 10 s))."
CHOSEN = ("policy", "backfill", "score", "load", "failures")
"""Settings that are named at the top of the page."""
MOST_NOTES = 20
MOST_SETTINGS = 100
WAITS = (
    ("jobs", "Jobs", Unit.COUNT),
    ("mean_wait_s", "Mean wait", Unit.SECONDS),
    ("median_wait_s", "Median", Unit.SECONDS),
    ("p95_wait_s", "95 %", Unit.SECONDS),
    ("max_wait_s", "Longest", Unit.SECONDS),
    ("mean_bounded_slowdown", "Bounded slowdown", Unit.FACTOR),
)
SHARES = (
    ("used", "Had", Unit.SHARE),
    ("deserved", "Deserved", Unit.SHARE),
    ("evictions", "Evictions", Unit.COUNT),
)


def write_page(record: RunRecord, path: Path) -> None:
    """Write the page of a run."""
    text = run_page(record)
    with whole_file(path) as file:
        file.write(text.encode("utf-8", "backslashreplace"))


@np.errstate(all="ignore")
def run_page(record: RunRecord) -> str:
    """The page as text."""
    columns, measures = RecordColumns(record), summary(record)
    charts = [
        utilisation_chart(columns),
        queue_chart(columns),
        wait_chart(columns),
        slowdown_chart(columns),
        *_share_charts(measures),
        gang_chart(measures),
        eviction_chart(columns),
        fragmentation_chart(columns),
        gantt_chart(columns),
        *_tables(record, measures),
    ]
    return document(record.name, _header(record, measures), (chart for chart in charts if chart is not None))


def _header(record: RunRecord, measures: Summary) -> Markup:
    nodes = f"{len(record.nodes):,} node{'' if len(record.nodes) == 1 else 's'}"
    offered = [(name, amount) for name, amount in record.capacity.items() if name not in SLOTS][:6]
    has = ", ".join(amount_text(name, amount) for name, amount in offered)
    lines = [element("p", f"Simulated on {nodes} ({has}), seed {record.seed}.")]
    settings = record.settings
    chosen = [f"{key.title()}: {settings[key]}" for key in CHOSEN if settings.get(key) is not None]
    lines += [element("p", f"{'. '.join(chosen)}.")] if chosen else []
    if record.partial:
        lines.append(element("p", "The run was interrupted: this is as far as it came.", class_="warn"))
    lines += [element("p", note) for note in record.notes[:MOST_NOTES]]
    return element(
        "header", element("h1", record.name), *lines, element("dl", *_tiles(measures), class_="tiles")
    )


def _tiles(measures: Summary) -> Iterable[Markup]:
    """The measures that matter and are known."""
    by_key = {measure.key: measure for measure in MEASURES}
    for key in TILES:
        if measures.get(key) is not None:
            title = by_key[key].title
            if key == "utilisation" and measures["utilisation_of"]:
                title += f", {measures['utilisation_of'].rpartition('/')[2]}"
            text = value_text(measures[key], by_key[key].unit)
            yield element("div", element("dt", title), element("dd", text))


def _share_charts(measures: Summary) -> Iterable[Markup]:
    """Of queues where there are several, and of users where jobs have them."""
    resource = measures["utilisation_of"]
    if len(measures["queues"]) > 1:
        yield share_chart(
            "Queues against what they deserve",
            f"Share of {resource} that each had on average, and what the policy says that it deserved, if anything.",
            measures["queues"],
        )
    if measures["users"]:
        yield share_chart(
            "Users against what they deserve",
            f"Share of {resource} that each had on average; equal users deserve equal parts while they have jobs.",
            measures["users"],
        )


def _tables(record: RunRecord, measures: Summary) -> Iterable[Markup]:
    rows = [(m.title, value_text(measures[m.key], m.unit)) for m in MEASURES if m.key in measures]
    by_resource = measures["utilisation_by_resource"]
    rows += [
        (f"Utilisation of {name}", value_text(share, Unit.SHARE))
        for name, share in by_resource.items()
        if name not in SLOTS
    ]
    third = -(-len(rows) // 3)
    parts = (table(("Measure", "Value"), rows[place : place + third]) for place in range(0, len(rows), third))
    yield figure("All measures", DEFINED, element("div", *parts, class_="tables"), wide=True)
    for title, key in (("Queues", "queues"), ("Users", "users")):
        if len(measures[key]) > 1:
            yield figure(
                title, "Those with the most resource-time first.", _part_table(measures[key]), wide=True
            )
    settings = list(record.settings.items())[:MOST_SETTINGS]
    cells = [(key, "-" if value is None else str(value)) for key, value in settings]
    yield figure(
        "Settings", "What the run was asked for.", table(("Setting", "Value"), cells, "text"), wide=True
    )


def _part_table(rows: dict[str, dict[str, Any]]) -> Markup:
    columns = (*WAITS, *SHARES)
    cells = [
        (name or "-", *(value_text(row[key], unit) for key, _, unit in columns)) for name, row in rows.items()
    ]
    return table(("", *(title for _, title, _ in columns)), cells)
