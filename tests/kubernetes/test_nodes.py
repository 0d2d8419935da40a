"""Our nodes on a real API server: they know nothing but its API."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from stromboli.kube.cluster_access import Access
from tests.embedded.nodes.node_services import NODES, Town, town_on

pytestmark = pytest.mark.real_only
RUN = "stromboli.sh/run-time"


async def _tidy(here: Town) -> None:
    for name in ("sim-1", "proc-1"):
        await here.client.delete(NODES, name)


def test_pods_run_on_simulated_and_real_nodes(access: Access, tmp_path: Path) -> None:
    async def story() -> None:
        async with town_on(access, tmp_path, "sim=1x8cpu", "proc=1x8cpu,real") as here:
            await here.pod("pretends", node="sim-1", annotations={RUN: "300ms"})
            await here.pod("works", node="proc-1", command=["sh", "-c", "echo hello; exit 3"])
            await here.pod("leaves", node="sim-1")
            await here.phase("pretends", "Succeeded")
            failed = await here.phase("works", "Failed")
            assert failed["status"]["containerStatuses"][0]["state"]["terminated"]["exitCode"] == 3
            assert await here.log("works") == "hello\n"
            await here.phase("leaves", "Running")
            await here.delete("leaves")
            await here.gone("leaves")
            await _tidy(here)
            await here.gone("pretends")

    asyncio.run(story())
