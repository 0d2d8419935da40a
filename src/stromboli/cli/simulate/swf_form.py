"""`--swf`: a trace in Standard Workload Format, on one node with a CPU per processor or on nodes of the user's."""

from stromboli.cli.cli_errors import Usage
from stromboli.cli.simulate.prepared_simulation import PreparedSimulation
from stromboli.cli.simulate.simulate_options import SimulateOptions
from stromboli.engine.catalog import Catalog


def prepare_swf(options: SimulateOptions, catalog: Catalog) -> PreparedSimulation:
    """Read the trace; by default jobs are in the order of their submission, with backfill around the first."""
    raise Usage("--swf: not there yet")
