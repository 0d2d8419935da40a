"""`--workload` and `--dump`: a saved or generated workload, or the jobs and nodes of a cluster."""

from stromboli.cli.cli_errors import Usage
from stromboli.cli.simulate.prepared_simulation import PreparedSimulation
from stromboli.cli.simulate.simulate_options import SimulateOptions
from stromboli.engine.catalog import Catalog


def prepare_workload(options: SimulateOptions, catalog: Catalog) -> PreparedSimulation:
    """Read a workload that was saved, or generate one."""
    raise Usage("--workload: not there yet")


def prepare_dump(options: SimulateOptions, catalog: Catalog) -> PreparedSimulation:
    """Make a workload of the jobs of a cluster; its nodes are those of the cluster unless others are given."""
    raise Usage("--dump: not there yet")
