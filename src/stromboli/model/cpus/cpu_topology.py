"""CPUs of nodes: sets of them, their sockets, cores and NUMA nodes, and what a Numatopology reports about them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from stromboli.api import names
from stromboli.api.errors import BadObject, quoted
from stromboli.api.resources.quantity import QuantityError, whole
from stromboli.api.types.numa_topology import CpuDetail, Numatopology, NumatopologySpec

# -- sets of CPUs as the bits of a whole number, and their text as in `/sys`: `0-3,8`


MAX_CPUS = 8192
"""CPUs of a node have smaller numbers than this; no kernel is built for more."""
MAX_CPU_SET_LENGTH = 65_536
"""Maximum characters of a text that is read as a set of CPUs."""

_RANGE = re.compile(r"([0-9]{1,9})(?:-([0-9]{1,9}))?")


def parse_cpu_set(text: str) -> int:
    """The set that a text such as `0-3,8` represents; raises `ValueError` with the reason if it is invalid."""
    if len(text) > MAX_CPU_SET_LENGTH:
        raise ValueError(f"is longer than {MAX_CPU_SET_LENGTH} characters")
    bits = 0
    for part in text.split(",") if text else ():
        match = _RANGE.fullmatch(part)
        if match is None:
            raise ValueError(f"{part[:63]!r} is no CPU number and no range of them, such as 0-3")
        first, last = int(match[1]), int(match[2] or match[1])
        if last >= MAX_CPUS:
            raise ValueError(f"{last} is above {MAX_CPUS - 1}, the highest number that a CPU may have")
        if first > last:
            raise ValueError(f"the range {part} ends before it begins")
        bits |= (1 << last + 1) - (1 << first)
    return bits


def format_cpu_set(bits: int) -> str:
    """The text of a set, with ranges of consecutive numbers."""
    ranges: list[str] = []
    while bits:
        first = (bits & -bits).bit_length() - 1
        rest = bits >> first
        length = (~rest & rest + 1).bit_length() - 1
        ranges.append(str(first) if length == 1 else f"{first}-{first + length - 1}")
        bits = rest >> length << first + length
    return ",".join(ranges)


def cpu_numbers(bits: int) -> Iterator[int]:
    """The numbers of the CPUs of a set, ascending."""
    while bits:
        lowest = bits & -bits
        yield lowest.bit_length() - 1
        bits ^= lowest


# -- the topology of a node


MAX_NUMA_NODES = 64
"""NUMA nodes have smaller numbers than this: a set of them is one word."""
MAX_PODS_LISTED = 16_384
"""Maximum pods with CPUs that a Numatopology may list."""
STATIC = "static"
POLICIES = ("", "none", "best-effort", "restricted", "single-numa-node")
"""The policies of the kubelet's topology manager."""

_NUMBER = re.compile(r"[0-9]{1,9}")


class CpuTopology:
    """The CPUs of a node by NUMA node, socket and core; equal nodes share one."""

    def __init__(self, details: Mapping[int, CpuDetail]):
        self.cpus = sum(1 << cpu for cpu in details)
        """All CPUs."""
        self.numa: dict[int, int] = {}
        """The CPUs of each NUMA node, by its number, ascending; so are the sets below."""
        self.sockets: dict[int, int] = {}
        """The CPUs of each socket."""
        self.cores: dict[int, int] = {}
        """The CPUs of each core number; exporters number cores per socket, so it may be several cores."""
        self.core_socket: dict[int, int] = {}
        """The socket of the first CPU of each core number."""
        self.socket_cores: dict[int, list[int]] = {}
        """The core numbers of each socket, ascending."""
        for cpu, detail in sorted(details.items()):
            self.numa[detail.numa] = self.numa.get(detail.numa, 0) | 1 << cpu
            self.sockets[detail.socket] = self.sockets.get(detail.socket, 0) | 1 << cpu
            self.cores[detail.core] = self.cores.get(detail.core, 0) | 1 << cpu
            self.core_socket.setdefault(detail.core, detail.socket)
        self.numa, self.sockets, self.cores = (
            dict(sorted(sets.items())) for sets in (self.numa, self.sockets, self.cores)
        )
        for socket, core in sorted({(detail.socket, detail.core) for detail in details.values()}):
            self.socket_cores.setdefault(socket, []).append(core)
        self.physical_cores = sum(map(len, self.socket_cores.values()))
        """The number of cores, counted by socket and core."""

    @property
    def cpus_per_socket(self) -> int:
        return self.cpus.bit_count() // len(self.sockets) if self.sockets else 0

    @property
    def cpus_per_core(self) -> int:
        return self.cpus.bit_count() // self.physical_cores if self.physical_cores else 0

    def numa_counts(self, cpus: int) -> tuple[tuple[int, int], ...]:
        """The number of CPUs of a set on each NUMA node that has any of them."""
        counts = ((number, (cpus & members).bit_count()) for number, members in self.numa.items())
        return tuple((number, count) for number, count in counts if count)


class NodePolicies(NamedTuple):
    """What the kubelet of a node does with CPUs."""

    static: bool
    """Whether its CPU manager gives whole CPUs to containers that request them."""
    topology: str
    """The policy of its topology manager."""
    reserved: int
    """The number of CPUs that it reserves for the system."""


@dataclass(slots=True, frozen=True)
class NodeCpus:
    """The content of a Numatopology."""

    topology: CpuTopology
    policies: NodePolicies
    allocatable: int | None
    """The CPUs that the kubelet has not given to any container; none if the object does not state them."""
    listed_uids: frozenset[str]
    """The pods that have been given CPUs, by uid."""
    listed_names: frozenset[tuple[str, str]]
    """Those that are listed without a uid, by namespace and name."""

    def lists(self, uid: str, namespace: str, name: str) -> bool:
        """Whether a pod has been given its CPUs."""
        return uid in self.listed_uids or (namespace, name) in self.listed_names


def cpu_details(spec: NumatopologySpec) -> dict[int, CpuDetail]:
    """The CPUs of a Numatopology by number; raises `BadObject` if a number is invalid."""
    if len(spec.cpu_detail) > MAX_CPUS:
        raise BadObject("spec.cpuDetail", f"{len(spec.cpu_detail)} CPUs, at most {MAX_CPUS} can be counted")
    details: dict[int, CpuDetail] = {}
    for text, detail in spec.cpu_detail.items():
        cpu = int(text) if _NUMBER.fullmatch(text) else -1
        if not 0 <= cpu < MAX_CPUS:
            raise BadObject(
                "spec.cpuDetail", f"{quoted(text)} is not the number of a CPU, 0 to {MAX_CPUS - 1}"
            )
        if not 0 <= detail.numa < MAX_NUMA_NODES:
            limit = f"0 to {MAX_NUMA_NODES - 1}"
            raise BadObject(
                f"spec.cpuDetail.{cpu}.numa", f"{detail.numa} is not the number of a NUMA node, {limit}"
            )
        if detail.socket < 0 or detail.core < 0:
            raise BadObject(f"spec.cpuDetail.{cpu}", "the numbers of socket and core are 0 or more")
        details[cpu] = detail
    return details


def node_cpus(object: Numatopology, topology: CpuTopology) -> NodeCpus:
    """The content of a Numatopology, apart from its CPUs; raises `BadObject` if it is invalid."""
    spec = object.spec
    if len(spec.pod_allocations) > MAX_PODS_LISTED:
        problem = f"{len(spec.pod_allocations)} pods, at most {MAX_PODS_LISTED} are read"
        raise BadObject("spec.podAllocations", problem)
    return NodeCpus(
        topology,
        _policies(spec),
        _allocatable(spec),
        frozenset(pod.uid for pod in spec.pod_allocations if pod.uid),
        frozenset((pod.namespace, pod.name) for pod in spec.pod_allocations if not pod.uid),
    )


def _policies(spec: NumatopologySpec) -> NodePolicies:
    topology = spec.policies.get("TopologyManagerPolicy", "")
    if topology not in POLICIES:
        known = ", ".join(POLICIES[1:])
        raise BadObject("spec.policies.TopologyManagerPolicy", f"{quoted(topology)} is none of {known}")
    return NodePolicies(spec.policies.get("CPUManagerPolicy") == STATIC, topology, _reserved(spec))


def _reserved(spec: NumatopologySpec) -> int:
    """A part of a CPU cannot be given to a container, so whole CPUs are reserved."""
    field = "spec.resReserved.cpu"
    if names.CPU not in spec.res_reserved:
        return 0
    try:
        reserved = whole(spec.res_reserved[names.CPU])
    except QuantityError as error:
        raise BadObject(field, str(error)) from None
    if not 0 <= reserved <= MAX_CPUS:
        raise BadObject(field, f"expected 0 to {MAX_CPUS} CPUs")
    return reserved


def _allocatable(spec: NumatopologySpec) -> int | None:
    resource = spec.numares.get(names.CPU)
    if resource is None:
        return None
    try:
        return parse_cpu_set(resource.allocatable)
    except ValueError as error:
        raise BadObject("spec.numares.cpu.allocatable", str(error)) from None
