"""What came of a sweep, for people and programs."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import Any

import msgspec
import typer
from rich.table import Table

from stromboli.api.errors import printable
from stromboli.cli.cli_errors import print_warning
from stromboli.cli.output import Format, console, write_as
from stromboli.cli.simulate.run_text import plain_table, print_table
from stromboli.simulator.reports.measure_titles import MEASURES, value_text
from stromboli.simulator.sweeps.results_folder import FailedRun, ResultsFolder
from stromboli.simulator.sweeps.sweep_plan import SweepPlan
from stromboli.simulator.sweeps.sweep_summary import (
    ConfigurationResult,
    configuration_results,
    differing_axes,
)

SHOWN = (
    "jobs",
    "utilisation",
    "gpu_allocation",
    "fragmentation",
    "mean_wait_s",
    "mean_bounded_slowdown",
    "makespan_s",
)
"""Measures that the table shows if there are any; JSON has all."""


def print_results(
    plan: SweepPlan, folder: ResultsFolder, failures: Sequence[FailedRun], output: Format
) -> None:
    """The means of each configuration, and the way on."""
    results = configuration_results(plan, folder)
    if alike := sum(result.alike for result in results):
        print_warning(
            f"configurations whose runs are all the same: {alike} of {len(results)}. Seeds change nothing there,"
            " so that their number says nothing about significance; one seed is enough"
        )
    if output is not Format.TABLE:
        write_as(output, _document(plan, folder, results, failures))
        return
    print_table(console(), _table(results))
    typer.echo(f"records: {folder.records}")
    if sum(bool(result.records) for result in results) > 1:
        typer.echo(f"compare: stromboli compare {shlex.quote(str(folder.path))}")


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


def _table(results: list[ConfigurationResult]) -> Table:
    """Axes that have several labels, the number of runs, and means."""
    axes = differing_axes([result.configuration for result in results])
    measures = [
        measure
        for key in SHOWN
        for measure in MEASURES
        if measure.key == key and any(key in result.mean for result in results)
    ]
    table = plain_table(axes, ("Runs", *(measure.title for measure in measures)))
    for result in results:
        count = len(result.records)
        runs = str(count) if count == result.planned else f"{count} of {result.planned}"
        cells = [value_text(result.mean.get(measure.key), measure.unit) for measure in measures]
        table.add_row(*(printable(result.configuration[axis]) for axis in axes), runs, *cells)
    return table
