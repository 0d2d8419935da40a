"""The next step for a Guaranteed pod that finds no CPUs of its own: what nodes lack, in numbers where there are any."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from stromboli.api import names
from stromboli.model.cpus.cpu_ledger import CpuLedger, whole_cpus
from stromboli.model.cpus.cpu_picker import reserved_cpus

if TYPE_CHECKING:
    from stromboli.model.task import Task

_PLAIN = {
    names.NUMA_INFO_EMPTY: "run Volcano's resource exporter, which makes a Numatopology for each node",
    names.CPU_MANAGER_NOT_STATIC: "let the kubelets give out whole CPUs: cpuManagerPolicy: static",
    names.NUMA_CPUS_EMPTY: "containers have all CPUs for themselves: wait or add nodes",
}
_POLICY_DIFFERS = names.NUMA_POLICY_DIFFERS.partition("{")[0]


def way_to_cpus(ledger: CpuLedger, task: Task, reason: str) -> str:
    """What would let a task have CPUs of its own; empty for a reason that is none of numa-aware."""
    if reason in _PLAIN:
        return _PLAIN[reason]
    if reason.startswith(_POLICY_DIFFERS):
        return "set topologyPolicy of the task to what the kubelets of the nodes have (topologyManagerPolicy)"
    for container in task.shape.spec.containers:
        if reason == names.NUMA_UNASSIGNABLE.format(container=container.name[:63]):
            return _of_container(ledger, task, whole_cpus(container))
    return ""


def _of_container(ledger: CpuLedger, task: Task, asked: int) -> str:
    policy = task.annotations.get(names.NUMA_TOPOLOGY_POLICY, "")
    nodes = {
        name: cpus
        for name, cpus in ledger.nodes.items()
        if cpus.policies.static
        and cpus.policies.topology in ((policy,) if policy not in ("", "none") else _STRICT)
    }
    policies = Counter(cpus.policies.topology for cpus in nodes.values())
    where = ", ".join(f"{policy} on {_nodes(count)}" for policy, count in sorted(policies.items()))
    free, node = max(
        ((_most_free(ledger, name), name) for name in nodes), default=(0, ""), key=lambda most: most[0]
    )
    among = "one NUMA node" if set(policies) == {_STRICT[1]} else "as few NUMA nodes as can hold them"
    asks = f"it asks for {_cpus(asked)} of {among} ({where})"
    return f"{asks}, and the most that one has free is {free} (node {node}): wait, ask for less, or use best-effort"


_STRICT = ("restricted", "single-numa-node")


def _most_free(ledger: CpuLedger, name: str) -> int:
    """How many CPUs the NUMA node of a node has free that has the most."""
    cpus = ledger.nodes[name]
    free = (ledger.free(name) or 0) & ~reserved_cpus(cpus.topology, cpus.policies.reserved)
    return max(((free & members).bit_count() for members in cpus.topology.numa.values()), default=0)


def _nodes(count: int) -> str:
    return f"{count} node{'s' if count != 1 else ''}"


def _cpus(count: int) -> str:
    return f"{count} CPU{'s' if count != 1 else ''}"
