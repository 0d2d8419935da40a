"""What runs the pods of nodes: a runtime of simulated nodes, or one of real nodes."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Protocol

from stromboli.embedded.nodes.node_types import NodePod
from stromboli.embedded.nodes.pod_logs import LogQuery
from stromboli.embedded.nodes.pod_streams import StreamRuntime
from stromboli.embedded.nodes.usage.cluster_usage import ContainerUsage


class PodRuntime(StreamRuntime, Protocol):
    """Runs the pods of nodes of a kind."""

    def put(self, pod: NodePod) -> None:
        """A pod was added or updated."""

    def drop(self, uid: str) -> None:
        """The pod or its node is gone: whatever runs of it ends at once, without a status."""

    def log(self, pod: NodePod, query: LogQuery) -> AsyncGenerator[bytes] | None:
        """A container's log; None if it has none."""

    async def measure(self) -> None:
        """Bring what is measured of pods up to date."""

    def usage(self, pod: NodePod) -> list[ContainerUsage]:
        """What its running containers use, as far as that is known."""

    async def clean_up(self) -> None:
        """All pods that exist were put: whatever is left of others goes."""

    async def close(self) -> None: ...
