"""A workload's numbers as a table."""

from __future__ import annotations

from rich.console import Console

from stromboli.api import names
from stromboli.api.errors import printable
from stromboli.cli.simulate.run_text import plain_table, print_table
from stromboli.cli.status.resource_columns import short_bytes
from stromboli.simulator.reports.measure_titles import duration
from stromboli.simulator.workloads.workload_summary import Spread, WorkloadSummary

MOST_ROWS = 8
"""Queues, users and namespaces that are listed, unless the table is wide."""
BYTE_RESOURCES = {names.MEMORY, names.EPHEMERAL_STORAGE}
"""Resources whose amounts are bytes."""


def print_summary(out: Console, summary: WorkloadSummary, wide: bool = False) -> None:
    """The numbers, then resources, queues and users."""
    _print(out, summary.name)
    for note in summary.notes:
        _print(out, f"  {note}")
    table = plain_table(("",), ("",), header=False)
    table.add_row("Jobs", f"{summary.jobs:,}")
    table.add_row("Pods", f"{summary.pods:,}")
    table.add_row("Submitted over", duration(summary.span_s))
    table.add_row("With a time limit", f"{summary.with_time_limit:,}")
    table.add_row("Without end", f"{summary.without_end:,}")
    table.add_row("Nodes", f"{summary.nodes:,}")
    print_table(out, table)
    _print(out, "")
    _print_spreads(out, summary)
    _print_resources(out, summary)
    for title, counts in (
        ("Queue", summary.queues),
        ("User", summary.users),
        ("Namespace", summary.namespaces),
    ):
        if len(counts) > 1:
            _print_counts(out, title, counts, len(counts) if wide else MOST_ROWS)


def _print_spreads(out: Console, summary: WorkloadSummary) -> None:
    table = plain_table(("",), ("Min", "Median", "Mean", "Max"))
    if summary.pods_per_job is not None:
        table.add_row("Pods of a job", *(f"{value:,.4g}" for value in _parts(summary.pods_per_job)))
    if summary.run_time_s is not None:
        table.add_row("Run time", *map(duration, _parts(summary.run_time_s)))
    if table.row_count:
        print_table(out, table)
        _print(out, "")


def _parts(spread: Spread) -> tuple[float, ...]:
    return spread.min, spread.median, spread.mean, spread.max


def _print_resources(out: Console, summary: WorkloadSummary) -> None:
    table = plain_table(("Resource",), ("Requested", "Of nodes", "Load"))
    for name, amount in summary.requested.items():
        load = f"{summary.load[name]:.1%}" if name in summary.load else "-"
        capacity = summary.capacity.get(name, 0.0)
        table.add_row(printable(name), _amount(name, amount), _amount(name, capacity), load)
    print_table(out, table)


def _amount(resource: str, amount: float) -> str:
    return short_bytes(amount) if resource in BYTE_RESOURCES else f"{amount:,.6g}"


def _print_counts(out: Console, title: str, counts: dict[str, int], most: int) -> None:
    _print(out, "")
    table = plain_table((title,), ("Jobs",))
    for name in list(counts)[:most]:
        table.add_row(printable(name), f"{counts[name]:,}")
    if len(counts) > most:
        rest = sum(list(counts.values())[most:])
        table.add_row(f"{len(counts) - most} others", f"{rest:,}")
    print_table(out, table)


def _print(out: Console, line: str) -> None:
    out.print(printable(line), markup=False, soft_wrap=True)
