"""What a simulated cluster holds from the start: nodes, queues and priority classes; the record that begins with it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from stromboli.api.decoding import decode
from stromboli.api.errors import BadObject
from stromboli.api.manifests.object_defaults import implied_queues
from stromboli.api.resources.resource_lists import amounts
from stromboli.api.types.node import Node as NodeObject
from stromboli.api.types.scheduling import Queue as QueueObject
from stromboli.model.cluster import Cluster
from stromboli.simulator.cluster_notation import Manifest
from stromboli.simulator.job_manifests import priority_class
from stromboli.simulator.rehearsal import Rehearsal
from stromboli.simulator.runs.run_record import RunRecord
from stromboli.simulator.runs.run_recorder import Counts, add, in_units
from stromboli.simulator.runs.simulation_settings import SimulationSettings
from stromboli.simulator.workloads.submitted_jobs import Workload
from stromboli.simulator.workloads.workload_errors import WorkloadError


def add_objects(world: Rehearsal, workload: Workload, nodes: Sequence[Manifest]) -> None:
    """Add what exists before the first job; an object that cannot be used is an error of the workload."""
    try:
        objects = [decode(manifest) for manifest in workload.objects]
        known = [each.name for each in objects if isinstance(each, QueueObject)]
        for queue in implied_queues(known):
            world.intake.put(queue)
        for value in sorted({job.priority for job in workload.jobs} - {0}):
            world.add(priority_class(value))
        for manifest in (*workload.objects, *nodes):
            world.add(manifest)
    except BadObject as error:
        raise WorkloadError(workload.name, str(error)) from None


def nodes_of(cluster: Cluster) -> dict[str, NodeObject]:
    """The nodes that exist, by name."""
    return {node.name: node.object for node in cluster.nodes.values() if node.object is not None}


def size_of(node: NodeObject) -> Counts:
    """What is allocatable on a node, in the scheduler's own units."""
    return amounts(node.status.allocatable, "status.allocatable")


def capacity_of(nodes: Mapping[str, NodeObject]) -> Counts:
    """What is allocatable on all nodes together."""
    total: Counts = {}
    for node in nodes.values():
        add(total, size_of(node), 1)
    return total


def new_record(
    name: str, nodes: Mapping[str, NodeObject], settings: SimulationSettings, notes: Sequence[str] = ()
) -> RunRecord:
    """The record of a simulation that has not begun."""
    return RunRecord(
        name,
        in_units(capacity_of(nodes)),
        {name: in_units(size_of(node)) for name, node in nodes.items()},
        [],
        seed=settings.seed,
        settings=dict(settings.described_by),
        notes=list(notes),
    )
