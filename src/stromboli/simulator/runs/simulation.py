"""A simulation: the real scheduler on a virtual world, from event to event."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from stromboli.engine.catalog import Catalog
from stromboli.policy.policy import Policy
from stromboli.simulator.cluster_notation import Manifest
from stromboli.simulator.runs.node_outages import NodeFailures
from stromboli.simulator.runs.run_record import RunRecord
from stromboli.simulator.runs.simulation_loop import SimulationLoop
from stromboli.simulator.runs.simulation_settings import SimulationSettings
from stromboli.simulator.runs.virtual_world import VirtualWorld
from stromboli.simulator.workloads.submitted_jobs import Workload

__all__ = ["NodeFailures", "Progress", "SimulationSettings", "simulate"]

Progress = Callable[[int, float], None]
"""Called at every moment with the number of jobs that are done and the virtual time."""


def simulate(
    workload: Workload,
    nodes: Sequence[Manifest],
    policy: Policy,
    catalog: Catalog,
    settings: SimulationSettings | None = None,
    progress: Progress = lambda done, now: None,
) -> RunRecord:
    """Run a workload to its end, or as far as it comes; an interrupt ends it early and leaves a partial record.

    Without nodes it runs on those of the workload.
    """
    settings = settings or SimulationSettings()
    world = VirtualWorld(workload, nodes or workload.nodes, settings)
    loop = SimulationLoop(world, policy, catalog, settings, world.observe)
    record = world.record
    try:
        while loop.step():
            progress(world.done, world.time)
    except KeyboardInterrupt:
        record.partial = True
    loop.close()
    if settings.measures is not None:
        record.measures.update(settings.measures(record))
    return record
