"""Addresses: every simulated node has a range of 254, given out in turn and remembered by the pods themselves."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from stromboli.embedded.nodes.node_types import NodePod

LOCAL = "127.0.0.1"
"""Where real pods are: they share this machine."""
_FIRST = 1
_CIDR = re.compile(r"10\.(\d{1,3})\.(\d{1,3})\.0/24")


@dataclass(slots=True)
class NodeRange:
    """The addresses of one node."""

    number: int
    next: int = _FIRST
    taken: dict[str, str] = field(default_factory=dict)
    """By the uid of the pod that has it."""

    @property
    def cidr(self) -> str:
        return f"{self._prefix}.0/24"

    @property
    def _prefix(self) -> str:
        return f"10.{64 + self.number // 256 % 192}.{self.number % 256}"

    @property
    def host(self) -> str:
        return f"172.{16 + self.number // 65536 % 16}.{self.number // 256 % 256}.{self.number % 256}"

    def take(self, uid: str) -> str:
        used = set(self.taken.values())
        for _ in range(254):
            address = f"{self._prefix}.{self.next}"
            self.next = self.next % 254 + 1
            if address not in used:
                break
        self.taken[uid] = address
        return address


class PodAddresses:
    """Who lives where."""

    def __init__(self) -> None:
        self._ranges: dict[str, NodeRange] = {}
        self._last = 0

    def range(self, node: str) -> NodeRange:
        if node not in self._ranges:
            self._last += 1
            self._ranges[node] = NodeRange(self._last)
        return self._ranges[node]

    def adopt(self, node: str, cidr: str) -> None:
        """A node that was there before has its range already."""
        found = _CIDR.fullmatch(cidr)
        if found is None or node in self._ranges:
            return
        number = (int(found[1]) - 64) * 256 + int(found[2])
        self._ranges[node] = NodeRange(number)
        self._last = max(self._last, number)

    def of(self, pod: NodePod) -> tuple[str, str]:
        """The pod's address, the one it had before if it had one, and its node's."""
        found = self.range(pod.spec.node_name)
        address = pod.status.pod_ip or found.taken.get(pod.uid) or found.take(pod.uid)
        found.taken[pod.uid] = address
        return address, found.host

    def leave(self, node: str, uid: str) -> None:
        if node in self._ranges:
            self._ranges[node].taken.pop(uid, None)
