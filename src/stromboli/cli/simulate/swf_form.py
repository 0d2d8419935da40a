"""`--swf`: a trace in Standard Workload Format, on one node with a CPU per processor or on nodes of the user's."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from stromboli.api import names
from stromboli.api.resources.quantity import whole
from stromboli.cli.cli_errors import Usage
from stromboli.cli.simulate.form_settings import adjusted, given_nodes, settings_of
from stromboli.cli.simulate.prepared_simulation import PreparedSimulation
from stromboli.cli.simulate.progress_bar import reading_bar
from stromboli.cli.simulate.simulate_options import Backfill, SimulateOptions
from stromboli.cli.simulate.simulation_policies import BATCH, PACKING, policy_of
from stromboli.engine.catalog import Catalog
from stromboli.simulator.cluster_notation import Manifest
from stromboli.simulator.workloads.gang_shapes import NodeRoom
from stromboli.simulator.workloads.swf_reader import SwfOptions, read_swf


def prepare_swf(options: SimulateOptions, catalog: Catalog) -> PreparedSimulation:
    """Read the trace; by default jobs are in the order of their submission, with backfill around the first."""
    nodes = given_nodes(options)
    with reading_bar(options.quiet) as progress:
        trace = read_swf(str(options.swf), _swf_options(nodes, options.overrun), progress)
    workload = adjusted(trace, options)
    if options.policy is None and options.preset is None and options.backfill is None:
        options = replace(options, backfill=Backfill.EASY)
    policy = policy_of(options, catalog, BATCH + PACKING if nodes else BATCH)
    settings = settings_of(options, policy, workload=workload.name)
    return PreparedSimulation(workload, nodes, policy, settings)


def _swf_options(nodes: Sequence[Manifest], overrun: bool) -> SwfOptions:
    """On nodes of the user's, a pod has at most the CPUs of the smallest, and a job is a gang that they can hold."""
    if not nodes:
        return SwfOptions(overrun=overrun)
    rooms = tuple(NodeRoom(_allocatable(node, names.CPU), _allocatable(node, names.PODS)) for node in nodes)
    if min(room.cpus for room in rooms) < 1:
        raise Usage("--nodes: a node without a CPU; a processor of the trace is a CPU")
    return SwfOptions(rooms, overrun=overrun)


def _allocatable(node: Manifest, resource: str) -> int:
    return whole(node["status"]["allocatable"].get(resource, "0"))
