"""A cluster in which news starts cycles: pods start long before the period is over, and little else costs a cycle."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec
import pytest

from stromboli.api.durations import FOREVER, Duration
from stromboli.api.types.pod import Pod
from stromboli.api.types.scheduling import PodGroup
from stromboli.embedded.cluster_services import ServiceConfig
from stromboli.embedded.data_folder import DataFolder
from stromboli.embedded.embedded_cluster import EmbeddedCluster
from stromboli.embedded.nodes.node_groups import node_manifests
from stromboli.embedded.nodes.simulated.pod_stages import StageDelays
from stromboli.embedded.nodes.write_queue import NODES
from stromboli.extensions import load_catalog
from stromboli.kube.api_client import Client
from stromboli.kube.api_resources import RESOURCES
from stromboli.kube.cluster_access import find_access
from stromboli.policy.policy import default_policy
from stromboli.scheduling_loop import Scheduler
from tests.manifests import group, pod

CATALOG = load_catalog()
PODS, GROUPS = RESOURCES[Pod], RESOURCES[PodGroup]
PERIOD = 600.0
GANG = 20


class Cluster:
    def __init__(self, client: Client, cycles: list[None]) -> None:
        self.client = client
        self.cycles = cycles

    async def running(self) -> int:
        pods = msgspec.json.decode(await self.client.list(PODS))["items"]
        return sum(pod["status"].get("phase") == "Running" for pod in pods)

    async def told(self, name: str) -> int:
        """How many pods run by the status of a PodGroup."""
        found = msgspec.json.decode(await self.client.get(GROUPS, name, "default"))
        return int(found["status"].get("running", 0))

    async def heartbeat(self, number: int) -> None:
        beat = {"type": "Ready", "status": "True", "lastHeartbeatTime": f"2026-01-01T00:00:{number:02}Z"}
        await self.client.patch(NODES, "n1", {"status": {"conditions": [beat]}}, subresource="status")


async def eventually(condition: Callable[[], Awaitable[bool]]) -> None:
    async with asyncio.timeout(60):
        while not await condition():
            await asyncio.sleep(0.02)


@asynccontextmanager
async def up(folder: Path, cycles: list[None]) -> AsyncIterator[Cluster]:
    delays = StageDelays(Duration(0.01, 0.01), FOREVER, 0.01)
    config = ServiceConfig(node_manifests(["2x40cpu"]), CATALOG, default_policy(CATALOG), delays, PERIOD)
    data = DataFolder(folder / "data")
    async with (
        EmbeddedCluster(data, config) as cluster,
        Client(find_access(str(cluster.kubeconfig))) as client,
    ):
        yield Cluster(client, cycles)
    data.release()


def test_news_starts_cycles_and_heartbeats_and_pods_of_a_gang_that_still_arrives_do_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    cycles: list[None] = []
    cycle = Scheduler.cycle
    monkeypatch.setattr(Scheduler, "cycle", lambda self: (cycles.append(None), cycle(self))[1])

    async def story() -> None:
        async with up(tmp_path, cycles) as cluster:
            client = cluster.client
            await client.create(PODS, pod("lone"), "default")  # a PodGroup is made for it
            await eventually(lambda: is_equal(cluster.running(), 1))

            await client.create(GROUPS, group("gang", GANG, phase="Pending"), "default")
            for number in range(GANG):
                await client.create(PODS, pod(f"gang-{number}", "gang"), "default")
            await eventually(lambda: is_equal(cluster.running(), 1 + GANG))
            await eventually(lambda: is_equal(cluster.told("gang"), GANG))
            assert len(cycles) <= GANG  # for both, and the status that is written a moment later

            before = len(cycles)
            for number in range(GANG):
                await cluster.heartbeat(number)
            await client.create(PODS, pod("last", cpu=2), "default")
            await eventually(lambda: is_equal(cluster.running(), 2 + GANG))
            assert len(cycles) - before <= 4

    asyncio.run(story())


async def is_equal(number: Awaitable[int], expected: int) -> bool:
    return await number == expected
