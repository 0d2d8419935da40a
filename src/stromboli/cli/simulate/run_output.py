"""What came of a simulation, for people and programs: measures, files and pages."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from stromboli.cli.cli_errors import Usage, print_warning
from stromboli.cli.output import StatusFormat, console, write_as
from stromboli.cli.simulate.run_text import print_run
from stromboli.cli.simulate.simulate_options import SimulateOptions
from stromboli.simulator.reports.csv_files import write_csv
from stromboli.simulator.reports.measures import summary
from stromboli.simulator.reports.page.run_page import write_page
from stromboli.simulator.reports.record_files import save_record
from stromboli.simulator.runs.run_record import RunRecord

Content = TypeVar("Content")


def show_run(record: RunRecord, options: SimulateOptions) -> None:
    """Write the files that were asked for and print the measures of a run."""
    write_files(record, options)
    measures = summary(record)
    if options.output in (StatusFormat.JSON, StatusFormat.YAML):
        for note in record.notes:
            print_warning(note)
        write_as(options.output, measures)
    else:
        print_run(console(), record, measures, wide=options.output is StatusFormat.WIDE)


def write_files(record: RunRecord, options: SimulateOptions) -> None:
    """The record, the page and the tables."""
    for path, write in ((options.save, save_record), (options.csv, write_csv), (options.report, write_page)):
        if path is not None:
            write_file(path, record, write)


def write_file(path: Path, content: Content, write: Callable[[Content, Path], object]) -> None:
    """Write a file; what cannot be written is told by its name."""
    try:
        write(content, path)
    except OSError as error:
        raise Usage(f"{path}: cannot be written: {error.strerror or error}") from None
