"""A cluster as `stromboli up` starts it, inside this process, to which tests apply examples."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import yaml

from stromboli.api.durations import Duration
from stromboli.api.types.kinds import CLUSTER_SCOPED, kind_name
from stromboli.embedded.cluster_services import ServiceConfig
from stromboli.embedded.data_folder import DataFolder
from stromboli.embedded.embedded_cluster import EmbeddedCluster
from stromboli.embedded.nodes.node_groups import node_manifests
from stromboli.embedded.nodes.simulated.pod_stages import StageDelays
from stromboli.extensions import load_catalog
from stromboli.kube.api_client import Client, with_query
from stromboli.kube.api_resources import resource_of
from stromboli.kube.cluster_access import find_access
from stromboli.kube.request import Request
from stromboli.policy.policy import load_policy
from stromboli.policy.presets import preset
from tests.docs.pages import ROOT

EXAMPLES = ROOT / "examples"
CATALOG = load_catalog()
OF_THE_CLUSTER = {kind_name(kind) for kind in CLUSTER_SCOPED}
DELAYS = StageDelays(start_delay=Duration(0.05, 0.05), stop_delay=0.05)
VOLCANO_JOBS = {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job"}
PODS = {"apiVersion": "v1", "kind": "Pod"}


class ExampleCluster:
    """Applies examples and looks at what became of them."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def apply(self, example: str) -> None:
        """All objects of a file below `examples`, in order, checked as strictly as kubectl asks for."""
        for manifest in yaml.safe_load_all((EXAMPLES / example).read_text()):
            namespace = "" if manifest["kind"] in OF_THE_CLUSTER else "default"
            path = with_query(resource_of(manifest).path(namespace), {"fieldValidation": "Strict"})
            await self._client.send(Request("POST", path, json.dumps(manifest).encode()))

    async def delete(self, kind: dict[str, str], name: str) -> None:
        await self._client.delete(resource_of(kind), name, "default")

    async def items(self, kind: dict[str, str]) -> list[dict[str, Any]]:
        answer = json.loads(await self._client.list(resource_of(kind)))
        items: list[dict[str, Any]] = answer["items"]
        return items

    async def names(self, api_version: str, kind: str) -> set[str]:
        items = await self.items({"apiVersion": api_version, "kind": kind})
        return {item["metadata"]["name"] for item in items}

    async def jobs(self) -> dict[str, str]:
        """The phases of jobs."""
        return {
            job["metadata"]["name"]: job.get("status", {}).get("state", {}).get("phase", "")
            for job in await self.items(VOLCANO_JOBS)
        }

    async def pods(self, phase: str = "Running") -> dict[str, str]:
        """The nodes of the pods that are in this phase and stay."""
        return {
            pod["metadata"]["name"]: pod["spec"].get("nodeName", "")
            for pod in await self.items(PODS)
            if pod["status"].get("phase") == phase and "deletionTimestamp" not in pod["metadata"]
        }

    async def running(self, prefix: str) -> int:
        return sum(name.startswith(prefix) for name in await self.pods())

    async def until(self, look: Callable[[], Any], expected: object, seconds: float = 40.0) -> None:
        """Wait until what is seen is what is expected."""
        end = asyncio.get_running_loop().time() + seconds
        while (seen := await look()) != expected:
            assert asyncio.get_running_loop().time() < end, f"expected {expected}, saw {seen}"
            await asyncio.sleep(0.1)


@asynccontextmanager
async def example_cluster(
    folder: Path, nodes: str, policy: str | None = None
) -> AsyncIterator[ExampleCluster]:
    """With the nodes of `--nodes`, and a policy below `examples` or the preset of `stromboli up`."""
    text = preset("full") if policy is None else (EXAMPLES / policy).read_text()
    config = ServiceConfig(node_manifests([nodes]), CATALOG, load_policy(text, CATALOG), DELAYS, period=0.1)
    data = DataFolder(folder / "data")
    try:
        async with (
            EmbeddedCluster(data, config) as cluster,
            Client(find_access(str(cluster.kubeconfig))) as client,
        ):
            yield ExampleCluster(client)
    finally:
        data.release()
