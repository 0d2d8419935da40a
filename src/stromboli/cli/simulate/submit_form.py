"""`--submit`: when a job would start on a cluster, whom it would delay and who would be evicted."""

from stromboli.cli.cli_errors import Usage
from stromboli.cli.simulate.simulate_options import SimulateOptions


def run_submit(options: SimulateOptions) -> None:
    """Answer for a job that is submitted to a dump or to the live cluster."""
    raise Usage("--submit: not there yet")
