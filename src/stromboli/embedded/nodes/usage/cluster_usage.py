"""What containers, pods and nodes use: requested by the API server, provided by the nodes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple, Protocol


class Usage(NamedTuple):
    """CPUs and bytes of memory in use, and the seconds over which CPUs were measured."""

    cpus: float
    memory: int
    window: float


class ContainerUsage(NamedTuple):
    name: str
    usage: Usage


def total(usages: Iterable[Usage]) -> Usage:
    """Of several together; the shortest window counts."""
    cpus, memory, window = 0.0, 0, 0.0
    for usage in usages:
        cpus += usage.cpus
        memory += usage.memory
        window = min(window or usage.window, usage.window)
    return Usage(cpus, memory, window)


class UsageSource(Protocol):
    """Knows what the pods use that it runs, and their nodes."""

    async def measure(self) -> None:
        """Bring what is measured up to date."""

    def pod_usage(self, namespace: str, pod: str) -> list[ContainerUsage]:
        """Of its running containers; empty if none of them runs, or none is known."""

    async def node_usage(self, node: str) -> Usage | None:
        """None if it does not run."""


class ClusterUsage:
    """Usage from the node service, once it runs: an API server starts before its nodes."""

    def __init__(self) -> None:
        self._source: UsageSource | None = None

    def connect(self, source: UsageSource) -> None:
        self._source = source

    async def measure(self) -> None:
        if self._source is not None:
            await self._source.measure()

    def pod_usage(self, namespace: str, pod: str) -> list[ContainerUsage]:
        return [] if self._source is None else self._source.pod_usage(namespace, pod)

    async def node_usage(self, node: str) -> Usage | None:
        return None if self._source is None else await self._source.node_usage(node)
