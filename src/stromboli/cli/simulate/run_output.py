"""What came of a simulation, for people and programs: measures, files and pages."""

from __future__ import annotations

from functools import partial

from stromboli.api.errors import printable
from stromboli.cli.cli_errors import print_note, print_warning
from stromboli.cli.output import StatusFormat, console, write_as
from stromboli.cli.simulate.report_files import write_file
from stromboli.cli.simulate.run_text import print_run
from stromboli.cli.simulate.simulate_options import SimulateOptions
from stromboli.simulator.reports.csv_files import write_csv
from stromboli.simulator.reports.measures import summary
from stromboli.simulator.reports.page.run_page import write_page
from stromboli.simulator.reports.paper_plots import plot_run
from stromboli.simulator.reports.record_files import save_record
from stromboli.simulator.runs.run_record import RunRecord


def show_run(record: RunRecord, options: SimulateOptions) -> None:
    """Write the files that were asked for and print the measures of a run."""
    write_files(record, options)
    measures = summary(record)
    if options.output in (StatusFormat.JSON, StatusFormat.YAML):
        for note in record.notes:
            print_note(printable(note))
        if record.failed:
            print_warning(printable(record.failed))
        write_as(options.output, {**measures, "notes": record.notes})
    else:
        print_run(console(), record, measures, wide=options.output is StatusFormat.WIDE)


def write_files(record: RunRecord, options: SimulateOptions) -> None:
    """The record, the tables, the page and the plots."""
    quiet = options.quiet
    write_file(options.save, record, save_record, quiet)
    write_file(options.csv, record, write_csv, quiet)
    write_file(options.report, record, write_page, quiet)
    write_file(options.plots, record, partial(plot_run, format=options.plot_format.value), quiet)
