"""What came of a simulation, for people and programs: measures, files and pages."""

from __future__ import annotations

from pathlib import Path

import msgspec

from stromboli.cli.cli_errors import Usage, print_warning
from stromboli.cli.output import StatusFormat, console, write_as
from stromboli.cli.simulate.simulate_options import SimulateOptions
from stromboli.simulator.reports.measures import summary
from stromboli.simulator.runs.run_record import RunRecord


def show_run(record: RunRecord, options: SimulateOptions) -> None:
    """Print the measures of a run and write the files that were asked for."""
    if options.save is not None:
        _write(options.save, msgspec.json.encode(record))
    for note in record.notes:
        print_warning(note)
    measures = summary(record)
    if options.output in (StatusFormat.JSON, StatusFormat.YAML):
        write_as(options.output, measures)
        return
    out = console()
    for name, value in measures.items():
        if isinstance(value, int | float | str) and value != "":
            out.print(f"{name:28} {value:.6g}" if isinstance(value, float) else f"{name:28} {value}")


def _write(path: Path, content: bytes) -> None:
    try:
        path.write_bytes(content)
    except OSError as error:
        raise Usage(f"{path}: cannot be written: {error.strerror or error}") from None
