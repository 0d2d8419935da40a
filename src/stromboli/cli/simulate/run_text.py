"""The measures of a run as tables."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from rich.console import Console
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from stromboli.api.errors import printable
from stromboli.simulator.reports.measure_titles import (
    MEASURES,
    NONE,
    Measure,
    Unit,
    duration,
    factor,
    value_text,
)
from stromboli.simulator.reports.measures import Summary
from stromboli.simulator.runs.run_record import RunRecord

WIDEST = 10_000
"""Characters in a line of a table."""
OF_WAITS = {"mean_wait_s", "median_wait_s", "p95_wait_s", "max_wait_s", "mean_bounded_slowdown"}
"""Measures that say nothing of lists of pods that start as they arrive, or leave."""
MOST_ROWS = 12
"""Queues or users in a table that is not wide."""


def print_run(out: Console, record: RunRecord, measures: Summary, wide: bool = False) -> None:
    """The measures that matter, and queues where there are several; `wide` has all measures, users, gangs and sizes."""
    _print(out, f"{record.name}{', interrupted' if record.partial else ''}")
    for note in record.notes:
        _print(out, f"  {note}")
    print_table(out, _measure_table(measures, wide))
    parts = [("Queues", "queues")]
    if wide:
        parts += [("Users", "users"), ("Gangs, by number of pods", "gangs")]
        parts += [(f"Jobs, by {measures['utilisation_of']} that they ask for", "requests")]
    for title, key in parts:
        rows = measures[key]
        if len(rows) > 1:
            _print(out, "")
            _print(out, title)
            print_table(out, _part_table(rows, wide, key in ("queues", "users")))


def _print(out: Console, line: str) -> None:
    out.print(printable(line), markup=False, soft_wrap=True)


def print_table(out: Console, table: Table) -> None:
    """As wide as it has to be: a narrow terminal breaks lines, and nothing is cut off."""
    table.width = Measurement.get(out, out.options.update(max_width=WIDEST), table).maximum
    out.print(table, soft_wrap=True)


def plain_table(left: Iterable[str], right: Iterable[str], header: bool = True) -> Table:
    """A table without lines: columns of names, then columns of numbers."""
    table = Table(box=None, pad_edge=False, header_style="dim", padding=(0, 2, 0, 0), show_header=header)
    for title in left:
        table.add_column(title, no_wrap=True)
    for title in right:
        table.add_column(title, justify="right", no_wrap=True)
    return table


def _measure_table(measures: Summary, wide: bool) -> Table:
    table = plain_table(("",), ("",), header=False)
    waitless = "gpu_allocation" in measures and not measures.get("max_wait_s")
    for measure in MEASURES:
        value = measures.get(measure.key)
        matters = _matters(measure, value) and not (waitless and measure.key in OF_WAITS)
        if measure.key in measures and (matters or (wide and value is not None)):
            resource = measures.get("utilisation_of")
            title = (
                f"{measure.title} of {resource}"
                if measure.key == "utilisation" and resource
                else measure.title
            )
            table.add_row(Text(printable(title)), value_text(value, measure.unit))
    return table


def _matters(measure: Measure, value: Any) -> bool:
    """A main measure, less evictions where there are none; and jobs that did not end as they should, if any."""
    if measure.key in ("evictions", "lost_work_s"):
        return bool(value)
    return measure.main or bool(measure.unit is Unit.COUNT and value and measure.better < 0)


def _part_table(rows: dict[str, dict[str, Any]], wide: bool, with_shares: bool) -> Table:
    titles = ["Jobs", "Mean wait", "Median", "95 %", "Longest", "Bounded slowdown"]
    table = plain_table(("",), titles + (["Used", "Deserved", "Evictions"] if with_shares else []))
    for name, row in list(rows.items())[: None if wide else MOST_ROWS]:
        waits = ("mean_wait_s", "median_wait_s", "p95_wait_s", "max_wait_s")
        cells = [f"{row['jobs']:,}", *(NONE if row[key] is None else duration(row[key]) for key in waits)]
        slowdown = row["mean_bounded_slowdown"]
        cells.append(NONE if slowdown is None else factor(slowdown))
        if with_shares:
            cells += [
                value_text(row["used"], Unit.SHARE),
                value_text(row["deserved"], Unit.SHARE),
                str(row["evictions"]),
            ]
        table.add_row(Text(printable(name)) if name else NONE, *cells)
    if not wide and len(rows) > MOST_ROWS:
        table.add_row(f"({len(rows) - MOST_ROWS} more: -o wide)")
    return table
