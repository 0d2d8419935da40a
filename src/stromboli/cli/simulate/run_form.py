"""The forms that run a workload: one function of each prepares it, the rest is the same for all."""

from __future__ import annotations

import signal
import sys
from contextlib import redirect_stdout

import typer

from stromboli.cli.cli_errors import INTERRUPTED
from stromboli.cli.simulate.openb_form import prepare_openb
from stromboli.cli.simulate.option_effects import FILES, OPENB, SWF, WORKLOAD
from stromboli.cli.simulate.prepared_simulation import PreparedSimulation
from stromboli.cli.simulate.progress_bar import progress_bar
from stromboli.cli.simulate.run_output import show_run
from stromboli.cli.simulate.simulate_options import SimulateOptions
from stromboli.cli.simulate.swf_form import prepare_swf
from stromboli.cli.simulate.workload_form import prepare_files, prepare_workload
from stromboli.daemon.memory_management import collecting_rarely
from stromboli.daemon.noted_signals import noted_signals
from stromboli.engine.catalog import Catalog
from stromboli.extensions import load_catalog
from stromboli.simulator.runs.run_record import RunRecord
from stromboli.simulator.runs.simulation import simulate

FORMS = {
    SWF: prepare_swf,
    OPENB: prepare_openb,
    WORKLOAD: prepare_workload,
    FILES: prepare_files,
}


def _record_of(prepared: PreparedSimulation, catalog: Catalog, quiet: bool) -> RunRecord:
    """Run it, as far as it comes: Ctrl-C ends it between two moments of virtual time."""
    bar = progress_bar(len(prepared.workload.jobs), quiet)
    with (
        collecting_rarely(),
        redirect_stdout(sys.stderr),  # a plugin may print
        bar as show,
        noted_signals(signal.SIGINT, impatient=True) as interrupted,
    ):

        def progress(done: int, now: float) -> None:
            show(done, now)
            if interrupted():
                raise KeyboardInterrupt

        return simulate(
            prepared.workload, prepared.nodes, prepared.policy, catalog, prepared.settings, progress
        )


def run_workload(form: str, options: SimulateOptions) -> None:
    """Simulate what was asked for and show it. Exit status 1 if something failed, 130 after an interrupt."""
    catalog = load_catalog(options.plugins_dir)
    prepared = FORMS[form](options, catalog)
    record = _record_of(prepared, catalog, options.quiet)
    show_run(record, options)
    if record.partial:
        raise typer.Exit(INTERRUPTED)
    if record.failed:
        raise typer.Exit(1)
