"""`stromboli compare`: read records, compare, show."""

from __future__ import annotations

from pathlib import Path

import typer

from stromboli.cli.cli_errors import Usage
from stromboli.cli.compare.comparison_text import print_comparison
from stromboli.cli.compare.record_arguments import record_files
from stromboli.cli.output import StatusFormat, console, write_as
from stromboli.cli.simulate.report_files import (
    PLOT_FORMAT,
    PLOTS,
    REPORT,
    PlotFormat,
    check_files,
    check_plots,
    write_file,
)
from stromboli.simulator.reports.comparison.record_groups import configurations_of
from stromboli.simulator.reports.comparison.run_comparison import CONFIDENCE, document
from stromboli.simulator.reports.comparison.run_comparison import compare as comparison_of
from stromboli.simulator.reports.comparison.significance import TestKind
from stromboli.simulator.reports.page.comparison_page import write_comparison
from stromboli.simulator.reports.paper_plots import plot_comparison


def compare(
    records: list[str] = typer.Argument(
        ...,
        metavar="RECORD|NAME=RECORD[,RECORD]...",
        show_default=False,
        help="Records of `stromboli simulate --save`, folders, results of sweeps, or patterns; several under a name.",
    ),
    output: StatusFormat = typer.Option(
        StatusFormat.TABLE, "-o", "--output", help="wide: all measures, and p values."
    ),
    report: Path | None = REPORT,
    plots: Path | None = PLOTS,
    plot_format: PlotFormat = PLOT_FORMAT,
    test: TestKind = typer.Option(TestKind.T, "--test", help="Which test gives the p values."),
    confidence: float = typer.Option(CONFIDENCE, "--confidence", metavar="SHARE", help="Of the intervals."),
) -> None:
    """Put runs side by side: means over seeds, differences from the first, and whether chance explains them.

    Records without a name belong together if their settings differ by nothing but the seed. Runs with the same seeds
    are compared in pairs.
    """
    if not 0.5 <= confidence < 1:
        raise Usage(f"--confidence {confidence:g}: it lies between 0.5 and 1, such as 0.95")
    check_files(report)
    check_plots(plots)
    configurations = configurations_of(record_files(records))
    if len(configurations) < 2:
        runs = len(configurations[0].runs)
        if runs == 1:
            raise Usage("one record alone: give another to compare it with")
        raise Usage(
            f"these {runs} records are one configuration: give another, or name them apart as NAME=RECORD"
        )
    comparison = comparison_of(configurations, confidence, test)
    write_file(report, comparison, write_comparison)
    write_file(plots, comparison, lambda all, folder: plot_comparison(all, folder, plot_format.value))
    if output in (StatusFormat.JSON, StatusFormat.YAML):
        write_as(output, document(comparison))
    else:
        print_comparison(console(), comparison, output is StatusFormat.WIDE)
