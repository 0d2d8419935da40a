"""A Job that is deleted goes, with pods that own claims: such pods and claims wait for each other."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from stromboli.api.durations import FOREVER, Duration
from stromboli.embedded.cluster_services import ServiceConfig
from stromboli.embedded.data_folder import DataFolder
from stromboli.embedded.embedded_cluster import EmbeddedCluster
from stromboli.embedded.nodes.node_devices import DEVICE_CLASSES
from stromboli.embedded.nodes.node_groups import node_manifests
from stromboli.embedded.nodes.simulated.pod_stages import StageDelays
from stromboli.extensions import load_catalog
from stromboli.kube.api_client import Client
from stromboli.kube.api_resources import Resource
from stromboli.kube.cluster_access import find_access
from stromboli.policy.policy import default_policy

CATALOG = load_catalog()
JOBS = Resource("batch.volcano.sh", "v1alpha1", "jobs", "Job")
PODS = Resource("", "v1", "pods", "Pod")
VOLUME_CLAIMS = Resource("", "v1", "persistentvolumeclaims", "PersistentVolumeClaim")
DEVICE_CLAIMS = Resource("resource.k8s.io", "v1", "resourceclaims", "ResourceClaim")
GPU = "example.com/gpu"


def job(name: str, node: str, *, devices: bool) -> dict[str, Any]:
    template = {"spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Mi"}}}}
    container = {"name": "main", "image": "none", "command": ["sleep", "infinity"]}
    spec = {
        "restartPolicy": "Never",
        "nodeSelector": {"kubernetes.io/hostname": node},
        "terminationGracePeriodSeconds": 1,
        "volumes": [{"name": "scratch", "ephemeral": {"volumeClaimTemplate": template}}],
        "containers": [{**container, "resources": {"limits": {GPU: 1}} if devices else {}}],
    }
    return {
        "apiVersion": JOBS.api_version,
        "kind": JOBS.kind,
        "metadata": {"name": name},
        "spec": {"tasks": [{"name": "worker", "replicas": 1, "template": {"spec": spec}}]},
    }


class Cluster:
    def __init__(self, client: Client) -> None:
        self.client = client

    async def list(self, resource: Resource) -> list[Any]:
        items: list[Any] = msgspec.json.decode(await self.client.list(resource, "default"))["items"]
        return items

    async def run(self, *jobs: dict[str, Any]) -> None:
        for each in jobs:
            await self.client.create(JOBS, each, "default")

        async def run() -> bool:
            phases = [pod["status"]["phase"] for pod in await self.list(PODS)]
            return phases == ["Running"] * len(jobs)

        await eventually(run)

    async def is_empty(self) -> bool:
        return not any([await self.list(kind) for kind in (JOBS, PODS, VOLUME_CLAIMS, DEVICE_CLAIMS)])


async def eventually(condition: Callable[[], Awaitable[bool]]) -> None:
    async with asyncio.timeout(60):
        while not await condition():
            await asyncio.sleep(0.05)


@asynccontextmanager
async def running(folder: Path) -> AsyncIterator[Cluster]:
    nodes = node_manifests(["sim=8cpu,2gpu,dra", "real=8cpu,real"])
    delays = StageDelays(Duration(0.05, 0.05), FOREVER, 0.05)
    config = ServiceConfig(nodes, CATALOG, default_policy(CATALOG), delays, period=0.1)
    data = DataFolder(folder / "data")
    async with EmbeddedCluster(data, config) as up, Client(find_access(str(up.kubeconfig))) as client:
        extended = {"spec": {"extendedResourceName": GPU}}
        await client.patch(DEVICE_CLASSES, "gpu.stromboli.sh", extended)
        yield Cluster(client)
    data.release()


def test_a_job_whose_pods_own_claims_goes_however_it_or_they_are_deleted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))

    async def scenario() -> None:
        async with running(tmp_path) as cluster:
            jobs = job("simulates", "sim-1", devices=True), job("runs", "real-1", devices=False)
            for policy in ("Foreground", "Background"):
                await cluster.run(*jobs)
                (claim,) = await cluster.list(DEVICE_CLAIMS)
                assert "resource.kubernetes.io/delete-protection" in claim["metadata"]["finalizers"]
                assert len(await cluster.list(VOLUME_CLAIMS)) == 2
                for each in jobs:
                    name = each["metadata"]["name"]
                    await cluster.client.delete(JOBS, name, "default", {"propagationPolicy": policy})
                await eventually(cluster.is_empty)
            await cluster.run(jobs[0])
            (pod,) = await cluster.list(PODS)
            await cluster.client.delete(JOBS, "simulates", "default", {"propagationPolicy": "Orphan"})
            by_force = {"gracePeriodSeconds": 0, "propagationPolicy": "Foreground"}
            await cluster.client.delete(PODS, pod["metadata"]["name"], "default", by_force)
            await eventually(cluster.is_empty)

    asyncio.run(scenario())
