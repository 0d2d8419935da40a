"""Our nodes on a real API server: they use its API alone."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from stromboli.kube.cluster_access import Access
from tests.embedded.nodes.node_services import NODES, NodeCluster, nodes_on

pytestmark = pytest.mark.real_only
RUN = "stromboli.sh/run-time"


async def _delete_nodes(cluster: NodeCluster) -> None:
    for name in ("sim-1", "proc-1"):
        await cluster.client.delete(NODES, name)


def test_pods_run_on_simulated_and_real_nodes(access: Access, tmp_path: Path) -> None:
    async def scenario() -> None:
        async with nodes_on(access, tmp_path, "sim=1x8cpu", "proc=1x8cpu,real") as cluster:
            await cluster.pod("simulated", node="sim-1", annotations={RUN: "300ms"})
            await cluster.pod("process", node="proc-1", command=["sh", "-c", "echo hello; exit 3"])
            await cluster.pod("deleted", node="sim-1")
            await cluster.phase("simulated", "Succeeded")
            failed = await cluster.phase("process", "Failed")
            assert failed["status"]["containerStatuses"][0]["state"]["terminated"]["exitCode"] == 3
            assert await cluster.log("process") == "hello\n"
            await cluster.phase("deleted", "Running")
            await cluster.delete("deleted")
            await cluster.gone("deleted")
            await _delete_nodes(cluster)
            await cluster.gone("simulated")

    asyncio.run(scenario())
