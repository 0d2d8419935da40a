"""What came of a simulation, for people and programs: measures, files and pages."""

from __future__ import annotations

from stromboli.cli.simulate.simulate_options import SimulateOptions
from stromboli.simulator.runs.run_record import RunRecord


def show_run(record: RunRecord, options: SimulateOptions) -> None:
    """Print the measures of a run and write the files that were asked for."""
