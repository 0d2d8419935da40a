"""Nodes that pretend to run pods, in a process of its own: `python -m tests.kubernetes.pretending KUBECONFIG`."""

from __future__ import annotations

import asyncio
import sys

from stromboli.embedded.nodes.node_service import Nodes
from stromboli.embedded.nodes.pod_stages import Habits
from stromboli.kube.api_client import Client
from stromboli.kube.cluster_access import find_access


async def pretend(kubeconfig: str) -> None:
    async with Client(find_access(kubeconfig)) as client:
        await Nodes(client, Habits()).run()


if __name__ == "__main__":
    asyncio.run(pretend(sys.argv[1]))
