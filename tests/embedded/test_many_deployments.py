"""Pods of Deployments on simulated nodes, created, rolled and deleted, while the event loop serves everybody.

    STROMBOLI_DEPLOYMENT_PODS=5000 python -m pytest -s tests/embedded/test_many_deployments.py

measures it for so many pods; by default they are few. Nothing that the loop does in a turn may take 100 ms of its
thread's CPU time, for few pods or many; a slower machine has more. What the scheduler's thread does meanwhile comes on
top, and is only kept within what a slow machine takes.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from stromboli.api.durations import FOREVER, Duration
from stromboli.embedded.cluster_services import ServiceConfig
from stromboli.embedded.data_folder import DataFolder
from stromboli.embedded.embedded_cluster import EmbeddedCluster
from stromboli.embedded.nodes.node_groups import node_manifests
from stromboli.embedded.nodes.simulated.pod_stages import StageDelays
from stromboli.extensions import load_catalog
from stromboli.kube.api_client import Client
from stromboli.kube.api_resources import Resource
from stromboli.kube.cluster_access import find_access
from stromboli.policy.policy import default_policy
from tests.embedded.loop_lag import LoopLag

PODS = int(os.environ.get("STROMBOLI_DEPLOYMENT_PODS", "600"))
COUNT = 2
SIZE = PODS // COUNT
PATIENCE = 120.0 + PODS
DEPLOYMENTS = Resource("apps", "v1", "deployments", "Deployment")
POD_RESOURCE = Resource("", "v1", "pods", "Pod")
Json = Any


def container(image: str) -> Json:
    return {"name": "main", "image": image, "resources": {"requests": {"cpu": "100m"}}}


def deployment(name: str) -> Json:
    labels = {"app": name}
    pod = {"containers": [container("one")], "terminationGracePeriodSeconds": 1}
    spec = {
        "replicas": SIZE,
        "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels}, "spec": pod},
    }
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}, "spec": spec}


def is_rolled_out(item: Json) -> bool:
    status = item["status"]
    counts = {status.get(f"{name}eplicas") for name in ("r", "readyR", "availableR", "updatedR")}
    return counts == {SIZE} and status["observedGeneration"] == item["metadata"]["generation"]


@asynccontextmanager
async def running(folder: Path) -> AsyncIterator[Client]:
    catalog = load_catalog()
    nodes = node_manifests([f"{max(4, PODS // 80)}x64cpu,256Gi"])
    delays = StageDelays(Duration(0.1, 0.1), FOREVER, 0.1)
    config = ServiceConfig(nodes, catalog, default_policy(catalog), delays, period=0.2)
    data = DataFolder(folder / "data")
    async with EmbeddedCluster(data, config) as up, Client(find_access(str(up.kubeconfig))) as client:
        yield client
    data.release()


async def measure(
    client: Client, subject: str, resource: Resource, done: Callable[[list[Json]], bool]
) -> None:
    """Wait until something holds for the objects of a kind, and look how long the loop was busy meanwhile."""
    begin, cpu = time.monotonic(), time.process_time()
    async with LoopLag() as lag, asyncio.timeout(PATIENCE):
        while not done(msgspec.json.decode(await client.list(resource, "default", limit=10))["items"]):
            await asyncio.sleep(0.2)
    used = f"{time.monotonic() - begin:.1f} s, {time.process_time() - cpu:.1f} s of CPU"
    longest = f"{1000 * lag.own:.0f} ms, with other threads {1000 * lag.worst:.0f} ms"
    print(f"{PODS} pods {subject}: {used}; longest turn of the loop: {longest}")
    lag.check(f"{PODS} pods {subject}")
    lag.check_own(f"{PODS} pods {subject}")


@pytest.mark.slow
def test_pods_of_deployments_are_created_rolled_and_deleted_while_others_are_served(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    names = [f"web-{number}" for number in range(COUNT)]

    async def scenario() -> None:
        async with running(tmp_path) as client:
            for name in names:
                await client.create(DEPLOYMENTS, deployment(name), "default")
            await measure(client, "created", DEPLOYMENTS, lambda items: all(map(is_rolled_out, items)))
            change = {"spec": {"template": {"spec": {"containers": [container("two")]}}}}
            for name in names:
                await client.patch(DEPLOYMENTS, name, change, "default")
            await measure(client, "rolled", DEPLOYMENTS, lambda items: all(map(is_rolled_out, items)))
            for name in names:
                await client.delete(DEPLOYMENTS, name, "default")
            await measure(client, "deleted", POD_RESOURCE, lambda items: not items)

    asyncio.run(scenario())
