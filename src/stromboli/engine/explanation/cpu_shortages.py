"""The next step for a Guaranteed pod that finds no CPUs of its own: what nodes lack, in numbers where there are any."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING

from stromboli.api import names
from stromboli.model.cpus.cpu_ledger import CpuLedger, whole_cpus
from stromboli.model.cpus.cpu_picker import reserved_cpus

if TYPE_CHECKING:
    from stromboli.model.task import Task

_PLAIN = {
    names.NUMA_INFO_EMPTY: "run Volcano's resource exporter, which creates a Numatopology for each node",
    names.CPU_MANAGER_NOT_STATIC: "set cpuManagerPolicy: static in the kubelet configuration",
    names.NUMA_CPUS_EMPTY: "all CPUs are exclusively assigned to containers: wait or add nodes",
}
_POLICY_DIFFERS = names.NUMA_POLICY_DIFFERS.partition("{")[0]


def way_to_cpus(ledger: CpuLedger, task: Task, reason: str, in_numbers: bool = False) -> str:
    """What would let a task have CPUs of its own; empty for a reason that is none of numa-aware.

    In numbers it says how many are free at this moment, too.
    """
    if reason in _PLAIN:
        return _PLAIN[reason]
    if reason.startswith(_POLICY_DIFFERS):
        return "set the task's topologyPolicy to the topologyManagerPolicy of the kubelets"
    for container in task.shape.spec.containers:
        if reason == names.NUMA_UNASSIGNABLE.format(container=container.name[:63]):
            return _of_container(ledger, task, whole_cpus(container), in_numbers)
    return ""


def _of_container(ledger: CpuLedger, task: Task, asked: int, in_numbers: bool) -> str:
    policy = task.annotations.get(names.NUMA_TOPOLOGY_POLICY, "")
    nodes = {
        name: cpus
        for name, cpus in ledger.nodes.items()
        if cpus.policies.static
        and cpus.policies.topology in ((policy,) if policy not in ("", "none") else _STRICT)
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


_STRICT = ("restricted", "single-numa-node")


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
