"""What would help a Guaranteed pod that finds no CPUs of its own."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING

from stromboli.model.cpus.cpu_picker import reserved_cpus
from stromboli.model.remedy import Rank, Remedy

if TYPE_CHECKING:
    from stromboli.model.cpus.cpu_ledger import CpuLedger
    from stromboli.model.task import Task

RUN_EXPORTER = Remedy(
    "run Volcano's resource exporter, which creates a Numatopology for each node", rank=Rank.ABSENCE
)
SET_STATIC = Remedy("set cpuManagerPolicy: static in the kubelet configuration", rank=Rank.ABSENCE)
ALL_ASSIGNED = Remedy("all CPUs are exclusively assigned to containers: wait or add nodes")
SAME_POLICY = Remedy("set the task's topologyPolicy to the topologyManagerPolicy of the kubelets")
_STRICT = ("restricted", "single-numa-node")


def fewer_cpus(ledger: CpuLedger, policy: str, asked: int) -> Remedy:
    """Of a pod with a container for which no NUMA nodes have so many CPUs left."""

    def text(task: Task) -> str:
        return _text(ledger, policy, asked, in_numbers=False)

    def in_numbers(task: Task) -> str:
        return _text(ledger, policy, asked, in_numbers=True)

    return Remedy(text, in_numbers)


def _text(ledger: CpuLedger, policy: str, asked: int, in_numbers: bool) -> str:
    nodes = {
        name: cpus
        for name, cpus in ledger.nodes.items()
        if cpus.policies.static and cpus.policies.topology in ((policy,) if policy else _STRICT)
    }
    policies = Counter(cpus.policies.topology for cpus in nodes.values())
    where = ", ".join(f"{policy} on {_nodes(count)}" for policy, count in sorted(policies.items()))
    single = set(policies) == {_STRICT[1]}
    among = "one NUMA node" if single else "the fewest possible NUMA nodes"
    asks = f"it requests {_cpus(asked)} from {among} ({where})"
    largest, node = _most(ledger, nodes, free=False)
    if single and asked > largest:
        return f"{asks}, and the largest has {largest} (node {node}): request less, or use best-effort"
    free, node = _most(ledger, nodes, free=True)
    number = f", and at most {free} are free on one (node {node})" if in_numbers else ""
    return f"{asks}{number}: wait, request less, or use best-effort"


def _most(ledger: CpuLedger, nodes: Iterable[str], free: bool) -> tuple[int, str]:
    """The CPUs of the NUMA node that has the most of them, or the most free, and its node."""
    most = ((_most_of_node(ledger, name, free), name) for name in nodes)
    return max(most, default=(0, ""), key=lambda each: each[0])


def _most_of_node(ledger: CpuLedger, name: str, free: bool) -> int:
    cpus = ledger.nodes[name]
    counted = ((ledger.free(name) or 0) if free else ~0) & ~reserved_cpus(
        cpus.topology, cpus.policies.reserved
    )
    return max(((counted & members).bit_count() for members in cpus.topology.numa.values()), default=0)


def _nodes(count: int) -> str:
    return f"{count} node{'s' if count != 1 else ''}"


def _cpus(count: int) -> str:
    return f"{count} CPU{'s' if count != 1 else ''}"
