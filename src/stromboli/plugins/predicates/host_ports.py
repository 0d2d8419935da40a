"""Host ports: no two pods of a node may take the same one (spec 04 2.5)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from stromboli.api import names
from stromboli.engine.placement.node_functions import Check, Nodes

if TYPE_CHECKING:
    from stromboli.api.types.pod import PodSpec
    from stromboli.model.cluster import Cluster
    from stromboli.model.constraints.pod_counts import PodCount
    from stromboli.model.task import Task

ANY_ADDRESS = "0.0.0.0"


class HostPort(NamedTuple):
    """A port of the host under one of its addresses, or under all of them."""

    protocol: str
    port: int
    address: str

    def conflicts(self, other: HostPort) -> bool:
        same = self.protocol == other.protocol and self.port == other.port
        return same and (self.address == other.address or ANY_ADDRESS in (self.address, other.address))


def host_ports(spec: PodSpec) -> frozenset[HostPort]:
    """The ports that a pod takes while it runs: those of containers and sidecars."""
    sidecars = [one for one in spec.init_containers if one.restart_policy == names.RESTART_ALWAYS]
    return frozenset(
        HostPort(port.protocol or "TCP", port.host_port, port.host_ip or ANY_ADDRESS)
        for container in (*spec.containers, *sidecars)
        for port in container.ports
        if port.host_port > 0
    )


class NodePorts:
    """Nodes on which no pod takes a port that is wanted."""

    def __init__(self, cluster: Cluster, wanted: frozenset[HostPort]):
        self._cluster = cluster
        self._wanted = wanted

    def version(self, task: Task) -> int:
        return self._rivals().version

    def checks(self, task: Task, nodes: Nodes) -> Iterator[Check]:
        yield Check(nodes.pick(self._rivals().by_node == 0), names.PORTS_TAKEN, curable=True)

    def _rivals(self) -> PodCount:
        """Pods that hold one of the wanted ports."""
        return self._cluster.pod_counts.get(("host ports", self._wanted), self._is_rival)

    def _is_rival(self, task: Task) -> bool:
        taken = host_ports(task.shape.spec)
        return any(one.conflicts(port) for one in self._wanted for port in taken)
