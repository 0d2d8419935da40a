"""Whether a node has CPUs for the containers of a pod, and which."""

from __future__ import annotations

from typing import NamedTuple

from stromboli.api import names
from stromboli.api.types.pod import PodSpec
from stromboli.model.cpus.cpu_ledger import whole_cpus
from stromboli.model.cpus.cpu_picker import reserved_cpus, take_cpus
from stromboli.model.cpus.cpu_topology import CpuTopology, NodeCpus
from stromboli.plugins.numa_aware.numa_hints import Hint, admits, best_hint

NO_POLICY = ("", "none")
NAME_LENGTH = 63


class Ask(NamedTuple):
    """All that is read of a task: its policy, and its containers with the CPUs that each gets for itself."""

    policy: str
    containers: tuple[tuple[str, int], ...]

    @classmethod
    def of(cls, spec: PodSpec, policy: str) -> Ask:
        containers = tuple(
            (container.name[:NAME_LENGTH], whole_cpus(container)) for container in spec.containers
        )
        return cls("" if policy in NO_POLICY else policy[:NAME_LENGTH], containers)


class Assignment(NamedTuple):
    """The CPUs for a pod on one node, or why it cannot have any."""

    cpus: int = 0
    refusal: str = ""


PASSES = Assignment()
UNKNOWN_CPUS = Assignment(refusal=names.NUMA_INFO_EMPTY)


def assign(ask: Ask, cpus: NodeCpus, free: int | None) -> Assignment:
    """The CPUs of a node for a pod, in the order of checks of Volcano (spec 04 7)."""
    static, policy, reserved = cpus.policies
    if ask.policy:
        if not static:
            return Assignment(refusal=names.CPU_MANAGER_NOT_STATIC)
        if policy != ask.policy:
            return Assignment(refusal=names.NUMA_POLICY_DIFFERS.format(task=ask.policy, node=policy))
        if not free:
            return Assignment(refusal=names.NUMA_CPUS_EMPTY)
    elif not static or policy in NO_POLICY:
        return PASSES
    kept, assigned = reserved_cpus(cpus.topology, reserved), 0
    for container, request in ask.containers:
        available = None if free is None else free & ~kept
        hint = best_hint(policy, cpus.topology, available, request)
        if not admits(policy, hint):
            return Assignment(refusal=names.NUMA_UNASSIGNABLE.format(container=container))
        given = _cpus_for(cpus.topology, hint, available or 0, request)
        assigned |= given
        free = None if free is None else free & ~given
    return Assignment(assigned)


def _cpus_for(topology: CpuTopology, hint: Hint, available: int, request: int) -> int:
    """CPUs of the NUMA nodes of the hint first, the rest from anywhere; none at all if there are not enough."""
    near = sum(cpus for number, cpus in topology.numa.items() if hint.mask >> number & 1) & available
    aligned = take_cpus(topology, near, min(near.bit_count(), request))
    if aligned is None:
        return 0
    rest = take_cpus(topology, available & ~aligned, request - aligned.bit_count())
    return 0 if rest is None else aligned | rest
