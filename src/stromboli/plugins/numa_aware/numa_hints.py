"""Which NUMA nodes a container should have its CPUs from: what the kubelet's topology manager would choose.

The kubelet looks at every set of NUMA nodes. Here the best set is found without: the smallest sets are those of the
NUMA nodes with the most CPUs, and the first of equally small ones is found by leaving out high numbers while it can be.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from stromboli.model.cpus.cpu_topology import CpuTopology

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
