"""The world `02-loop` on `stromboli up` (volcano#4947, #4949): a queue takes its share back once."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from stromboli.api.durations import FOREVER, Duration
from stromboli.embedded.cluster_services import ServiceConfig
from stromboli.embedded.data_folder import DataFolder
from stromboli.embedded.embedded_cluster import EmbeddedCluster
from stromboli.embedded.nodes.node_groups import node_manifests
from stromboli.embedded.nodes.simulated.pod_stages import StageDelays
from stromboli.kube.api_client import Client
from stromboli.kube.api_resources import Resource
from stromboli.kube.cluster_access import find_access
from tests.worlds.planning import CATALOG, WORLDS, policy_named

JOBS = Resource("batch.volcano.sh", "v1alpha1", "jobs", "Job")
QUEUES = Resource("scheduling.volcano.sh", "v1beta1", "queues", "Queue")
PODS = Resource("", "v1", "pods", "Pod")
DELAYS = StageDelays(Duration(0.05, 0.05), FOREVER, 0.05)
LOOP = WORLDS / "02-loop"


class Up:
    """The API of a running cluster, and every pod that was seen on it."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self.births: dict[str, set[str]] = {}

    async def submit(self, file: str) -> None:
        for manifest in yaml.safe_load_all((LOOP / file).read_text()):
            if manifest and manifest["kind"] == "Queue":
                await self._client.create(QUEUES, manifest)
            elif manifest:
                await self._client.create(JOBS, manifest, "default")

    async def running(self) -> Counter[str]:
        """Return how many pods of each job run."""
        items: list[dict[str, Any]] = msgspec.json.decode(await self._client.list(PODS, "default"))["items"]
        for pod in items:
            self.births.setdefault(pod["metadata"]["name"], set()).add(pod["metadata"]["uid"])
        return Counter(
            pod["metadata"]["labels"]["volcano.sh/job-name"]
            for pod in items
            if pod["status"]["phase"] == "Running" and "deletionTimestamp" not in pod["metadata"]
        )

    async def wait_for(self, running: dict[str, int]) -> None:
        begin = time.monotonic()
        while (seen := await self.running()) != running:
            assert time.monotonic() < begin + 60, seen
            await asyncio.sleep(0.05)

    async def stays_for(self, seconds: float) -> None:
        before = await self.running()
        begin = time.monotonic()
        while time.monotonic() < begin + seconds:
            assert await self.running() == before
            await asyncio.sleep(0.05)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("policy", "first", "then", "ends_with"),
    [
        ("stock-capacity", "a.yaml", "bc.yaml", {"b": 1, "c": 1}),
        ("full-capacity", "a.yaml", "bc.yaml", {"b": 1, "c": 1}),
        # Volcano's gate never admits `c` here.
        ("full-capacity", "a5.yaml", "b5.yaml", {"b": 1, "c": 4}),
    ],
)
def test_queues_end_at_their_deserved_shares_and_no_pod_is_evicted_twice(
    tmp_path: Path, policy: str, first: str, then: str, ends_with: dict[str, int]
) -> None:
    async def scenario() -> None:
        config = ServiceConfig(node_manifests(["8cpu"]), CATALOG, policy_named(policy), DELAYS, period=0.1)
        data = DataFolder(tmp_path / "data")
        async with (
            EmbeddedCluster(data, config) as embedded,
            Client(find_access(str(embedded.kubeconfig))) as client,
        ):
            up = Up(client)
            await up.submit("objects.yaml")
            await up.submit(first)
            await up.wait_for({"a": 5 if first == "a5.yaml" else 1})
            await up.submit(then)
            await up.wait_for(ends_with)
            await up.stays_for(3)
            assert all(len(uids) <= 2 for uids in up.births.values()), up.births
        data.release()

    asyncio.run(scenario())
