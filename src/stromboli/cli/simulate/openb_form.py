"""`--openb-nodes` and `--openb-pods`: pods arrive at the nodes of Alibaba's GPU cluster and never leave."""

from stromboli.cli.cli_errors import Usage
from stromboli.cli.simulate.prepared_simulation import PreparedSimulation
from stromboli.cli.simulate.simulate_options import SimulateOptions
from stromboli.engine.catalog import Catalog


def prepare_openb(options: SimulateOptions, catalog: Catalog) -> PreparedSimulation:
    """Read both lists and put the pods into the order of the seed."""
    raise Usage("--openb-pods: not there yet")
