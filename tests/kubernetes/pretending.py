"""Nodes that pretend to run pods, in a process of its own: `python -m tests.kubernetes.pretending KUBECONFIG`."""

from __future__ import annotations

import asyncio
import sys

from stromboli.embedded.nodes.plans import Habits
from stromboli.embedded.nodes.service import Nodes
from stromboli.kube.client import Client
from stromboli.kube.config import find_access


async def pretend(kubeconfig: str) -> None:
    async with Client(find_access(kubeconfig)) as client:
        await Nodes(client, Habits()).run()


if __name__ == "__main__":
    asyncio.run(pretend(sys.argv[1]))
