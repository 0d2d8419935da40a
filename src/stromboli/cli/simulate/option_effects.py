"""Which options have no effect on a form: whoever gives them expects something that would not happen."""

from __future__ import annotations

from stromboli.cli.cli_errors import Usage
from stromboli.cli.simulate.simulate_options import CycleMode, Sequence, SimulateOptions

SWF, OPENB, WORKLOAD, FILES, SUBMIT = (
    "--swf",
    "--openb-nodes with --openb-pods",
    "--workload",
    "-f",
    "--submit",
)
"""The forms, by the options that choose them."""
_OF_LISTS = {"--score", "--sequence"}
_OF_CLUSTERS = {"--now", "--assume-run-time"}
_OF_SUBMIT = {"--data", "--kubeconfig", "--context"}
_OF_RUNS = {
    "--nodes",
    "--load",
    "--overrun",
    "--jobs",
    "--cycle",
    "--failures",
    "--save",
    "--report",
    "--csv",
    "--plots",
}
WITHOUT_EFFECT = {
    SWF: _OF_LISTS | _OF_CLUSTERS | _OF_SUBMIT,
    OPENB: {"--nodes", "--overrun"} | _OF_CLUSTERS | _OF_SUBMIT,
    WORKLOAD: _OF_LISTS | _OF_CLUSTERS | _OF_SUBMIT,
    FILES: {"--load", "--overrun"} | _OF_LISTS | _OF_SUBMIT,
    SUBMIT: _OF_LISTS | _OF_RUNS,
}


def check_effects(form: str, options: SimulateOptions) -> None:
    """Refuse options that are without effect on a form."""
    given = {
        "--score": options.score is not None,
        "--sequence": options.sequence is not Sequence.OURS,
        "--now": options.now is not None,
        "--assume-run-time": options.assume_run_time is not None,
        "--data": options.data is not None,
        "--kubeconfig": bool(options.kubeconfig),
        "--context": bool(options.context),
        "--nodes": bool(options.nodes),
        "--load": options.load is not None,
        "--overrun": options.overrun,
        "--jobs": options.jobs is not None,
        "--cycle": options.cycle is not CycleMode.EVENT,
        "--failures": options.failures is not None,
        "--save": options.save is not None,
        "--report": options.report is not None,
        "--csv": options.csv is not None,
        "--plots": options.plots is not None,
    }
    useless = [name for name, is_given in given.items() if is_given and name in WITHOUT_EFFECT[form]]
    if useless:
        raise Usage(f"{', '.join(useless)}: without effect on {form}; leave it out")
