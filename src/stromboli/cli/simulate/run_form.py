"""The forms that run a workload: one function of each prepares it, the rest is the same for all."""

from __future__ import annotations

from stromboli.cli.simulate.openb_form import prepare_openb
from stromboli.cli.simulate.run_output import show_run
from stromboli.cli.simulate.simulate_options import SimulateOptions
from stromboli.cli.simulate.swf_form import prepare_swf
from stromboli.cli.simulate.workload_form import prepare_dump, prepare_workload
from stromboli.extensions import load_catalog
from stromboli.simulator.runs.simulation import simulate

FORMS = {
    "--swf": prepare_swf,
    "--openb-nodes with --openb-pods": prepare_openb,
    "--workload": prepare_workload,
    "--dump": prepare_dump,
}


def run_workload(form: str, options: SimulateOptions) -> None:
    """Simulate what was asked for and show it."""
    catalog = load_catalog(options.plugins_dir)
    prepared = FORMS[form](options, catalog)
    record = simulate(prepared.workload, prepared.nodes, prepared.policy, catalog, prepared.settings)
    show_run(record, options)
