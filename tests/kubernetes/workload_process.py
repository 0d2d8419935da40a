"""Our controllers of workloads in a process of their own: `python -m tests.kubernetes.workload_process KUBECONFIG`."""

from __future__ import annotations

import asyncio
import sys

from stromboli.controllers.runner import ControllerRunner
from stromboli.controllers.workloads.workload_controllers import WORKLOAD_CONTROLLERS
from stromboli.kube.api_client import Client
from stromboli.kube.cluster_access import find_access


async def run(kubeconfig: str) -> None:
    async with Client(find_access(kubeconfig)) as client:
        await ControllerRunner(client, WORKLOAD_CONTROLLERS).run()


if __name__ == "__main__":
    asyncio.run(run(sys.argv[1]))
