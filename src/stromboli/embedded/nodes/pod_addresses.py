"""Pod addresses: every simulated node has a CIDR of 254, allocated in turn; allocations are kept in pod statuses."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from stromboli.embedded.nodes import node_annotations
from stromboli.embedded.nodes.node_types import NodePod

LOCAL = "127.0.0.1"
"""The address of all real pods: they share this machine."""
_FIRST = 1
_CIDR = re.compile(r"10\.(\d{1,3})\.(\d{1,3})\.0/24")


@dataclass(slots=True)
class NodeRange:
    """The addresses of a node."""

    number: int
    next: int = _FIRST
    allocated: dict[str, str] = field(default_factory=dict)
    """By pod uid."""

    @property
    def cidr(self) -> str:
        return f"{self._prefix}.0/24"

    @property
    def _prefix(self) -> str:
        return f"10.{64 + self.number // 256 % 192}.{self.number % 256}"

    @property
    def host(self) -> str:
        return f"172.{16 + self.number // 65536 % 16}.{self.number // 256 % 256}.{self.number % 256}"

    def allocate(self, uid: str) -> str:
        used = set(self.allocated.values())
        for _ in range(254):
            address = f"{self._prefix}.{self.next}"
            self.next = self.next % 254 + 1
            if address not in used:
                break
        self.allocated[uid] = address
        return address


class PodAddresses:
    """The address ranges of all nodes."""

    def __init__(self) -> None:
        self._ranges: dict[str, NodeRange] = {}
        self._last = 0

    def range(self, node: str) -> NodeRange:
        if node not in self._ranges:
            self._last += 1
            self._ranges[node] = NodeRange(self._last)
        return self._ranges[node]

    def host(self, node: str, kind: str) -> str:
        """The address of a node itself."""
        return LOCAL if kind == node_annotations.REAL else self.range(node).host

    def adopt(self, node: str, cidr: str) -> None:
        """Take over the range that a node has already."""
        match = _CIDR.fullmatch(cidr)
        if match is None or node in self._ranges:
            return
        number = (int(match[1]) - 64) * 256 + int(match[2])
        self._ranges[node] = NodeRange(number)
        self._last = max(self._last, number)

    def of(self, pod: NodePod) -> tuple[str, str]:
        """The pod's address, which it keeps once it has one, and its node's."""
        node = self.range(pod.spec.node_name)
        address = pod.status.pod_ip or node.allocated.get(pod.uid) or node.allocate(pod.uid)
        node.allocated[pod.uid] = address
        return address, node.host

    def release(self, node: str, uid: str) -> None:
        if node in self._ranges:
            self._ranges[node].allocated.pop(uid, None)
