"""What came of a sweep, for people and programs."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import typer
from rich.table import Table

from stromboli.cli.output import Format, console, write_as
from stromboli.simulator.sweeps.results_folder import FailedRun, ResultsFolder
from stromboli.simulator.sweeps.sweep_plan import SweepPlan
from stromboli.simulator.sweeps.sweep_summary import ConfigurationResult, configuration_results

MEASURES = {
    "jobs": "JOBS",
    "utilisation": "UTILISATION",
    "mean_wait_s": "MEAN WAIT",
    "mean_bounded_slowdown": "MEAN SLOWDOWN",
    "makespan_s": "MAKESPAN",
    "gpu_allocation": "GPU ALLOCATION",
    "fragmentation": "FRAGMENTATION",
}
"""Measures that the table shows if there are any, with their headings; JSON has all."""
SHARES = ("utilisation", "gpu_allocation", "fragmentation")


def read_summary(record: Path) -> dict[str, Any]:
    """The summary of a record that was made by hand."""
    from stromboli.simulator.reports.measures import summary
    from stromboli.simulator.runs.run_record import RunRecord

    return summary(msgspec.json.decode(record.read_bytes(), type=RunRecord))


def print_results(
    plan: SweepPlan, folder: ResultsFolder, failures: Sequence[FailedRun], output: Format
) -> None:
    """The means of each configuration, and the way on."""
    results = configuration_results(plan, folder, read_summary)
    if output is not Format.TABLE:
        write_as(output, _document(plan, folder, results, failures))
        return
    console().print(_table(plan, results))
    typer.echo(f"records: {folder.records}")
    if (line := compare_line(results)) is not None:
        typer.echo(f"compare: {line}")


def _document(
    plan: SweepPlan,
    folder: ResultsFolder,
    results: list[ConfigurationResult],
    failures: Sequence[FailedRun],
) -> dict[str, Any]:
    done = {record for result in results for record in result.records}
    return {
        "name": plan.name,
        "results": str(folder.path),
        "runs": len(plan.distinct),
        "done": len(done),
        "failed": [msgspec.to_builtins(failed) for failed in failures],
        "configurations": [msgspec.to_builtins(result) for result in results],
    }


def _table(plan: SweepPlan, results: list[ConfigurationResult]) -> Table:
    """Axes that have several labels, the number of runs, and means."""
    labels = {axis: {result.configuration[axis] for result in results} for axis in results[0].configuration}
    axes = [axis for axis, values in labels.items() if len(values) > 1]
    measures = [name for name in MEASURES if any(name in result.mean for result in results)]
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="")
    for axis in axes:
        table.add_column(axis.upper(), overflow="fold")
    for heading in ("RUNS", *(MEASURES[name] for name in measures)):
        table.add_column(heading, justify="right", overflow="fold")
    for result in results:
        count = len(result.records)
        runs = str(count) if count == result.planned else f"{count} of {result.planned}"
        cells = [_cell(name, result.mean.get(name)) for name in measures]
        table.add_row(*(result.configuration[axis] for axis in axes), runs, *cells)
    return table


def _cell(name: str, value: float | None) -> str:
    if value is None:
        return "-"
    if name in SHARES:
        return f"{value * 100:.2f} %"
    if name.endswith("_s"):
        return f"{value:,.0f} s"
    return f"{value:,.0f}" if name == "jobs" else f"{value:,.2f}"


def compare_line(results: list[ConfigurationResult]) -> str | None:
    """The command that puts the configurations side by side, if there are two with results."""
    with_results = [result for result in results if result.records]
    if len(with_results) < 2:
        return None
    labels = {axis: {result.configuration[axis] for result in results} for axis in results[0].configuration}
    axes = [axis for axis, values in labels.items() if len(values) > 1]
    words = []
    for result in with_results:
        name = ",".join(result.configuration[axis] for axis in axes)
        words += [shlex.quote(f"{name}={record}") for record in result.records]
    return " ".join(["stromboli compare", *words])
