"""The parts of a cluster start, and if one gives up, that is said and the rest stops."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from stromboli.embedded.cluster_services import ServiceConfig, nodes
from stromboli.embedded.data_folder import DataFolder
from stromboli.embedded.embedded_cluster import EmbeddedCluster, ServiceFailed
from stromboli.embedded.nodes.node_groups import node_manifests
from stromboli.extensions import load_catalog
from stromboli.kube.api_client import Client
from stromboli.kube.api_resources import Resource
from stromboli.kube.request import ApiError, Request
from stromboli.policy.policy import default_policy

CATALOG = load_catalog()


def config() -> ServiceConfig:
    return ServiceConfig(node_manifests(["2x4cpu"]), CATALOG, default_policy(CATALOG))


@asynccontextmanager
async def breaking(config: ServiceConfig) -> AsyncIterator[asyncio.Task[object]]:
    async def work() -> None:
        raise ValueError("no more")

    task: asyncio.Task[object] = asyncio.create_task(work(), name="breaking")
    yield task


@asynccontextmanager
async def never_starts(config: ServiceConfig) -> AsyncIterator[asyncio.Task[object]]:
    raise ValueError("not today")
    yield


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> DataFolder:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    return DataFolder(tmp_path / "data")


def test_a_part_that_gives_up_is_named(folder: DataFolder) -> None:
    async def scenario() -> None:
        async with EmbeddedCluster(folder, config(), services=(nodes, breaking)) as cluster:
            with pytest.raises(ServiceFailed, match="breaking gave up: no more"):
                await asyncio.wait_for(cluster.wait_failed(), 20)

    asyncio.run(scenario())
    folder.release()


def test_a_part_that_does_not_start_leaves_nothing_behind(folder: DataFolder) -> None:
    async def scenario() -> None:
        with pytest.raises(ValueError, match="not today"):
            async with EmbeddedCluster(folder, config(), services=(nodes, never_starts)):
                pass
        assert len(asyncio.all_tasks()) == 1

    asyncio.run(scenario())
    folder.release()


def test_if_its_port_was_taken_meanwhile_it_takes_another(folder: DataFolder) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        folder.last_port = taken.getsockname()[1]

        async def scenario() -> str:
            async with EmbeddedCluster(folder, config(), services=(nodes,)) as cluster:
                return cluster.url

        assert not asyncio.run(scenario()).endswith(f":{folder.last_port}")
    folder.release()


def test_a_port_that_was_asked_for_and_is_taken_is_an_error(folder: DataFolder) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]

        async def scenario() -> None:
            async with EmbeddedCluster(folder, config(), port=port, services=(nodes,)):
                pass

        with pytest.raises(OSError, match="in use"):
            asyncio.run(scenario())
    folder.release()


def test_a_queue_with_jobs_is_not_deleted(folder: DataFolder) -> None:
    """Nor does `up` have a flag for it, as the chart does."""
    queues = Resource("scheduling.volcano.sh", "v1beta1", "queues", "Queue", namespaced=False)
    groups = Resource("scheduling.volcano.sh", "v1beta1", "podgroups", "PodGroup")

    async def scenario() -> None:
        settings = config()
        async with EmbeddedCluster(folder, settings, services=(nodes,)), Client(settings.access) as client:
            await client.create(queues, {"metadata": {"name": "blue"}})
            spec = {"minMember": 1, "queue": "blue"}
            await client.create(groups, {"metadata": {"name": "gang"}, "spec": spec}, "default")
            with pytest.raises(ApiError, match="unfinished jobs, such as PodGroup default/gang"):
                await client.send(Request("DELETE", queues.path(name="blue")))

    asyncio.run(scenario())
    folder.release()
