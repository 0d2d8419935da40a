"""An embedded API server with a node service, for tests."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

from stromboli.api.durations import FOREVER, Duration
from stromboli.embedded.http.api_server import ApiServer
from stromboli.embedded.nodes.node_groups import node_manifests
from stromboli.embedded.nodes.node_registration import register_nodes
from stromboli.embedded.nodes.node_service import NodeService
from stromboli.embedded.nodes.pod_logs import LogQuery
from stromboli.embedded.nodes.pod_streams import PodStreams
from stromboli.embedded.nodes.real.process_runtime import ProcessRuntime
from stromboli.embedded.nodes.simulated.pod_stages import StageDelays
from stromboli.embedded.nodes.usage.cluster_usage import ClusterUsage
from stromboli.kube.api_client import Client
from stromboli.kube.api_resources import Resource
from stromboli.kube.cluster_access import Access, find_access
from stromboli.kube.request import ApiError

PODS = Resource("", "v1", "pods", "Pod")
NODES = Resource("", "v1", "nodes", "Node", namespaced=False)
CONFIG_MAPS = Resource("", "v1", "configmaps", "ConfigMap")
DELAYS = StageDelays(Duration(0.05, 0.05), FOREVER, 0.05)


class NodeCluster:
    """Creates and observes pods on running nodes, as an administrator."""

    def __init__(self, client: Client, nodes: NodeService, access: Access) -> None:
        self.client = client
        self.nodes = nodes
        self.access = access

    async def pod(self, name: str, node: str = "n1", command: list[str] | None = None, **more: Any) -> None:
        """Create a pod that is bound already."""
        container = {"name": "main", "image": "none", **more.get("container", {})}
        if command is not None:
            container["command"] = command
        body = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name, "annotations": more.get("annotations", {})},
            "spec": {
                "nodeName": node,
                "restartPolicy": "Never",
                "containers": [container],
                **more.get("spec", {}),
            },
        }
        await self.client.create(PODS, body, "default")

    async def get(self, name: str, resource: Resource = PODS) -> Any:
        """The object, or None."""
        try:
            return json.loads(await self.client.get(resource, name, "default"))
        except ApiError as error:
            if error.status == 404:
                return None
            raise

    async def until(
        self, name: str, holds: Callable[[Any], Any], resource: Resource = PODS, seconds: float = 20
    ) -> Any:
        """Wait until the condition holds for the object."""
        content = None
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while not holds(content := await self.get(name, resource)):
                    await asyncio.sleep(0.03)
                return content
        raise AssertionError(f"{name} did not come to the state: {json.dumps(content)[:3000]}")

    async def phase(self, name: str, phase: str) -> Any:
        return await self.until(name, lambda pod: pod and pod["status"]["phase"] == phase)

    async def gone(self, name: str) -> None:
        await self.until(name, lambda pod: pod is None)

    async def delete(self, name: str, grace: int = 30) -> None:
        await self.client.delete(PODS, name, "default", {"gracePeriodSeconds": grace})

    async def log(self, name: str, **query: Any) -> str:
        pieces = self.nodes.log("default", name, LogQuery(**{"container": "main", **query}))
        return b"".join([piece async for piece in pieces]).decode() if pieces is not None else ""


@asynccontextmanager
async def running_nodes(
    folder: Path, *groups: str, delays: StageDelays = DELAYS, tls: bool = False, **runtime: Any
) -> AsyncIterator[NodeCluster]:
    """Nodes of these groups, on a server of their own; a second run on the same folder continues."""
    streams, usage = PodStreams(), ClusterUsage()
    async with ApiServer(folder / "data", tls=tls, usage=usage, streams=streams) as server:
        access = find_access(str(server.write_kubeconfig(folder / "kubeconfig")))
        async with nodes_on(access, folder, *groups, delays=delays, **runtime) as cluster:
            usage.connect(cluster.nodes)
            streams.connect(cluster.nodes.find)
            yield cluster


@asynccontextmanager
async def nodes_on(
    access: Access, folder: Path, *groups: str, delays: StageDelays = DELAYS, **runtime: Any
) -> AsyncIterator[NodeCluster]:
    """Nodes of these groups, on any server; `runtime` says more of real nodes."""
    async with Client(access) as client:
        nodes = NodeService(
            client,
            delays,
            lambda writes: ProcessRuntime(client, writes, folder / "work", first_backoff=0.1, **runtime),
        )
        existing = json.loads(await client.list(NODES))["items"]
        await register_nodes(client, node_manifests(list(groups)), existing)
        running = asyncio.create_task(nodes.run())
        try:
            await asyncio.wait_for(nodes.synced(), 20)
            yield NodeCluster(client, nodes, access)
        finally:
            running.cancel()
            with suppress(asyncio.CancelledError):
                await running
