"""Simulated nodes in a process of their own: `python -m tests.kubernetes.simulated_nodes KUBECONFIG`."""

from __future__ import annotations

import asyncio
import sys

from stromboli.embedded.nodes.node_service import NodeService
from stromboli.embedded.nodes.simulated.pod_stages import StageDelays
from stromboli.kube.api_client import Client
from stromboli.kube.cluster_access import find_access


async def run(kubeconfig: str) -> None:
    async with Client(find_access(kubeconfig)) as client:
        await NodeService(client, StageDelays()).run()


if __name__ == "__main__":
    asyncio.run(run(sys.argv[1]))
