"""Whether a node has CPUs for the containers of a pod, and which."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from stromboli.api import names
from stromboli.api.types.pod import PodSpec
from stromboli.model.cpus.cpu_ledger import whole_cpus
from stromboli.model.cpus.cpu_picker import reserved_cpus, take_cpus
from stromboli.model.cpus.cpu_topology import CpuTopology, NodeCpus
from stromboli.model.remedy import NO_REMEDY, Remedy
from stromboli.plugins.numa_aware.cpu_remedies import ALL_ASSIGNED, RUN_EXPORTER, SAME_POLICY, SET_STATIC

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
    remedy: Remedy = NO_REMEDY
    asked: int | None = None
    """The CPUs of the container for which there are too few."""


PASSES = Assignment()
UNKNOWN_CPUS = Assignment(refusal=names.NUMA_INFO_EMPTY, remedy=RUN_EXPORTER)


def assign(ask: Ask, cpus: NodeCpus, free: int | None) -> Assignment:
    """The CPUs of a node for a pod, in the order of checks of Volcano (spec 04 7)."""
    static, policy, reserved = cpus.policies
    if ask.policy:
        if not static:
            return Assignment(refusal=names.CPU_MANAGER_NOT_STATIC, remedy=SET_STATIC)
        if policy != ask.policy:
            differs = names.NUMA_POLICY_DIFFERS.format(task=ask.policy, node=policy)
            return Assignment(refusal=differs, remedy=SAME_POLICY)
        if not free:
            return Assignment(refusal=names.NUMA_CPUS_EMPTY, remedy=ALL_ASSIGNED)
    elif not static or policy in NO_POLICY:
        return PASSES
    kept, assigned = reserved_cpus(cpus.topology, reserved), 0
    for container, request in ask.containers:
        available = None if free is None else free & ~kept
        hint = best_hint(policy, cpus.topology, available, request)
        if not admits(policy, hint):
            unassignable = names.NUMA_UNASSIGNABLE.format(container=container)
            return Assignment(refusal=unassignable, asked=request)
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


# -- which NUMA nodes a container should have its CPUs from: what the kubelet's topology manager would choose


SINGLE = "single-numa-node"
RESTRICTED = "restricted"


class Hint(NamedTuple):
    """NUMA nodes as the bits of a number."""

    mask: int
    preferred: bool
    """Whether no smaller set of NUMA nodes could ever serve the container."""


def best_hint(policy: str, topology: CpuTopology, free: int | None, request: int) -> Hint:
    """The NUMA nodes for so many of the free CPUs; without a whole number of CPUs to look for, any will do."""
    everything = sum(1 << number for number in topology.numa)
    if not request or free is None:
        return Hint(everything, everything > 0)
    totals = {number: cpus.bit_count() for number, cpus in topology.numa.items()}
    least = _fewest(totals, request) or len(totals)
    available = _available(topology, free)
    preferred = _first_set(available, least, request)
    if preferred and (policy != SINGLE or least == 1):
        return Hint(preferred, True)
    size = _fewest(available, request) if policy != SINGLE else 0
    return Hint(_first_set(available, size, request) if size else everything, False)


def admits(policy: str, hint: Hint) -> bool:
    """Whether a container may have CPUs of these NUMA nodes."""
    return hint.preferred or policy not in (RESTRICTED, SINGLE)


def _available(topology: CpuTopology, free: int) -> dict[int, int]:
    """The free CPUs of each NUMA node. # quirk: spec 04 7: CPUs of which nothing is known count for NUMA node 0."""
    available = {number: (cpus & free).bit_count() for number, cpus in topology.numa.items()}
    if 0 in available:
        available[0] += (free & ~topology.cpus).bit_count()
    return available


def _fewest(counts: Mapping[int, int], request: int) -> int:
    """How many NUMA nodes it takes at least to have so many CPUs; 0 if all together have not."""
    total = 0
    for size, count in enumerate(sorted(counts.values(), reverse=True), start=1):
        total += count
        if total >= request:
            return size
    return 0


def _first_set(counts: Mapping[int, int], size: int, request: int) -> int:
    """The lowest mask of so many NUMA nodes that have so many CPUs together; 0 if none has."""
    numbers, mask = sorted(counts), 0
    if not _can_serve(counts, numbers, size, request):
        return 0
    while numbers:
        highest = numbers.pop()
        if not _can_serve(counts, numbers, size, request):
            mask |= 1 << highest
            size -= 1
            request -= counts[highest]
    return mask


def _can_serve(counts: Mapping[int, int], numbers: list[int], size: int, request: int) -> bool:
    """Whether any so many of these NUMA nodes have so many CPUs together."""
    largest = sorted((counts[number] for number in numbers), reverse=True)[:size]
    return len(largest) == size and sum(largest) >= request
