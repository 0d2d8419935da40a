"""The forms that run a workload: one function of each prepares it, the rest is the same for all."""

from __future__ import annotations

import sys
from contextlib import redirect_stdout

import typer

from stromboli.cli.cli_errors import INTERRUPTED
from stromboli.cli.simulate.openb_form import prepare_openb
from stromboli.cli.simulate.option_effects import FILES, OPENB, SWF, WORKLOAD
from stromboli.cli.simulate.progress_bar import progress_bar
from stromboli.cli.simulate.run_output import show_run
from stromboli.cli.simulate.simulate_options import SimulateOptions
from stromboli.cli.simulate.swf_form import prepare_swf
from stromboli.cli.simulate.workload_form import prepare_files, prepare_workload
from stromboli.daemon.memory_management import collecting_rarely
from stromboli.extensions import load_catalog
from stromboli.simulator.runs.simulation import simulate

FORMS = {
    SWF: prepare_swf,
    OPENB: prepare_openb,
    WORKLOAD: prepare_workload,
    FILES: prepare_files,
}


def run_workload(form: str, options: SimulateOptions) -> None:
    """Simulate what was asked for and show it. Exit status 1 if something failed, 130 after an interrupt."""
    catalog = load_catalog(options.plugins_dir)
    prepared = FORMS[form](options, catalog)
    bar = progress_bar(len(prepared.workload.jobs), options.quiet)
    with collecting_rarely(), redirect_stdout(sys.stderr), bar as progress:
        record = simulate(  # a plugin may print
            prepared.workload, prepared.nodes, prepared.policy, catalog, prepared.settings, progress
        )
    show_run(record, options)
    if record.partial:
        raise typer.Exit(INTERRUPTED)
    if record.failed:
        raise typer.Exit(1)
