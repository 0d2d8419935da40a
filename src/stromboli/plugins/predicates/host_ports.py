"""Host ports: no two pods of a node may use the same one (spec 04 2.5)."""

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
    """The host ports of a pod's containers and sidecars."""
    sidecars = [
        container for container in spec.init_containers if container.restart_policy == names.RESTART_ALWAYS
    ]
    return frozenset(
        HostPort(port.protocol or "TCP", port.host_port, port.host_ip or ANY_ADDRESS)
        for container in (*spec.containers, *sidecars)
        for port in container.ports
        if port.host_port > 0
    )


class NodePorts:
    """Nodes on which no pod uses one of the requested ports."""

    def __init__(self, cluster: Cluster, requested: frozenset[HostPort]):
        self._cluster = cluster
        self._requested = requested

    def version(self, task: Task) -> int:
        return self._conflicting_pods().version

    def checks(self, task: Task, nodes: Nodes) -> Iterator[Check]:
        yield Check(nodes.pick(self._conflicting_pods().by_node == 0), names.PORTS_TAKEN, curable=True)

    def _conflicting_pods(self) -> PodCount:
        return self._cluster.pod_counts.get(("host ports", self._requested), self._conflicts)

    def _conflicts(self, task: Task) -> bool:
        used = host_ports(task.shape.spec)
        return any(port.conflicts(other) for port in self._requested for other in used)
