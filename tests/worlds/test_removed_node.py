"""The world `11-noderemoved` on `stromboli up` (volcano#3296): the node of pods that succeeded is removed."""

from __future__ import annotations

import asyncio
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
from stromboli.policy.policy import default_policy
from tests.worlds.planning import CATALOG, WORLDS

JOBS = Resource("batch.volcano.sh", "v1alpha1", "jobs", "Job")
PODS = Resource("", "v1", "pods", "Pod")
NODES = Resource("", "v1", "nodes", "Node")
DELAYS = StageDelays(Duration(0.05, 0.05), FOREVER, 0.05)


class Up:
    """The API of a running cluster."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def submit(self, manifest: dict[str, Any]) -> None:
        await self._client.create(JOBS, manifest, "default")

    async def pods(self) -> dict[str, tuple[str, str]]:
        """Return phase and uid of each pod by name."""
        items = msgspec.json.decode(await self._client.list(PODS, "default"))["items"]
        return {pod["metadata"]["name"]: (pod["status"]["phase"], pod["metadata"]["uid"]) for pod in items}

    async def wait_for(self, phases: dict[str, str]) -> dict[str, tuple[str, str]]:
        async with asyncio.timeout(60):
            while True:
                pods = await self.pods()
                if {name: phase for name, (phase, _) in pods.items()} == phases:
                    return pods
                await asyncio.sleep(0.05)

    async def remove_node(self, name: str) -> None:
        await self._client.delete(NODES, name)

    async def status(self, job: str) -> dict[str, Any]:
        status: dict[str, Any] = msgspec.json.decode(await self._client.get(JOBS, job, "default"))["status"]
        return status


@pytest.mark.parametrize(("world", "node"), [("job", "n1"), ("plain", "n3")])
def test_succeeded_pods_do_not_run_again_and_healthy_ones_run_on_when_a_node_is_removed(
    tmp_path: Path, world: str, node: str
) -> None:
    (manifest,) = yaml.safe_load_all((WORLDS / "11-noderemoved" / f"{world}.yaml").read_text())
    name = manifest["metadata"]["name"]
    short = {f"{name}-short-{index}": "Succeeded" for index in range(3)}
    manifest["spec"]["tasks"][0]["template"]["metadata"]["annotations"]["stromboli.sh/run-time"] = "0.2s"
    probe = {
        "metadata": {"name": "probe"},
        "spec": manifest["spec"] | {"tasks": manifest["spec"]["tasks"][1:]},
    }

    async def scenario() -> None:
        config = ServiceConfig(
            node_manifests(["3x4cpu"]), CATALOG, default_policy(CATALOG), DELAYS, period=0.1
        )
        data = DataFolder(tmp_path / "data")
        async with (
            EmbeddedCluster(data, config) as embedded,
            Client(find_access(str(embedded.kubeconfig))) as client,
        ):
            up = Up(client)
            await up.submit(manifest)
            before = await up.wait_for({**short, f"{name}-long-0": "Running"})
            await up.remove_node(node)
            await up.wait_for({f"{name}-long-0": "Running"})
            await up.submit(probe)  # once it runs, the controllers have had the time to replace pods
            after = await up.wait_for({f"{name}-long-0": "Running", "probe-long-0": "Running"})
            assert after[f"{name}-long-0"] == before[f"{name}-long-0"]
            status = await up.status(name)
            assert (status["state"]["phase"], status["succeeded"], status["running"]) == ("Running", 3, 1)
            assert "retryCount" not in status
        data.release()

    asyncio.run(scenario())
