"""What the objects show of the grants of a task: after a restart they are all that is known."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stromboli.model.cpus.cpu_ledger import CpuGrant, granted_cpus, whole_cpus
from stromboli.model.cpus.cpu_topology import parse_cpu_set

if TYPE_CHECKING:
    from stromboli.model.cluster import Cluster
    from stromboli.model.ledgers import Grant
    from stromboli.model.task import Task

MOST_CPUS_PER_REQUESTED = 8
"""The CPUs of an annotation for each that its pod requests: whole cores may be more than was asked for."""


def grants_of(cluster: Cluster, task: Task, assumed: tuple[Grant, ...]) -> tuple[Grant, ...]:
    """The grants of a task on its node: those of its pod's annotations, else those that we assumed it to have."""
    if cluster.cpus not in cluster.ledgers_of(task.shape):
        return assumed
    shown = granted_cpus(task.annotations)
    requested = sum(whole_cpus(container) for container in task.shape.spec.containers)
    if shown is None or parse_cpu_set(shown.cpus).bit_count() > MOST_CPUS_PER_REQUESTED * requested:
        return assumed
    return (*(grant for grant in assumed if not isinstance(grant, CpuGrant)), shown)


def count_cpus(cluster: Cluster) -> None:
    """Count the CPUs of all tasks on nodes: there was no Numatopology until now, so their grants were not read."""
    for node in cluster.nodes.values():
        for task in node.tasks:
            if cluster.cpus in cluster.ledgers_of(task.shape):
                task.grants = grants_of(cluster, task, task.grants)
                cluster.cpus.add(task, task.status, node)
