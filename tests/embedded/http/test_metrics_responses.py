"""The API server of a whole cluster tells the metrics of its scheduler, to those who may get that path."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from stromboli.embedded.cluster_services import ServiceConfig, nodes, scheduler
from stromboli.embedded.data_folder import DataFolder
from stromboli.embedded.embedded_cluster import EmbeddedCluster
from stromboli.embedded.http.api_server import ApiServer
from stromboli.embedded.http.metrics_responses import PATH, ClusterMetrics
from stromboli.embedded.nodes.node_groups import node_manifests
from stromboli.extensions import load_catalog
from stromboli.kube.api_client import Client
from stromboli.kube.cluster_access import Access, find_access
from stromboli.kube.credentials import Identity, StaticCredentials
from stromboli.kube.request import ApiError, Request
from stromboli.policy.policy import default_policy

CATALOG = load_catalog()


async def as_group(access: Access, group: str) -> Client:
    """A client of somebody else, who is in one group."""
    headers = (await access.credentials.identity()).headers
    somebody = (*headers, ("Impersonate-User", "ann"), ("Impersonate-Group", group))
    return Client(Access(access.server, access.trust, StaticCredentials(Identity(somebody))))


async def refusal(client: Client) -> ApiError:
    async with client:
        with pytest.raises(ApiError) as refused:
            await client.send(Request("GET", PATH))
    return refused.value


def test_metrics_of_the_scheduler_are_served_to_those_who_monitor(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    folder = DataFolder(tmp_path / "data")
    config = ServiceConfig(node_manifests(["2x4cpu"]), CATALOG, default_policy(CATALOG))

    async def scenario() -> None:
        async with EmbeddedCluster(folder, config, services=(nodes, scheduler)) as cluster:
            access = find_access(str(cluster.kubeconfig))
            async with await as_group(access, "system:monitoring") as client:
                text = (await client.send(Request("GET", PATH))).decode()
            assert "\nstromboli_leader 1.0\n" in text
            assert 'rest_client_requests_total{code="200",host="127.0.0.1:' in text
            refused = await refusal(await as_group(access, "system:authenticated"))
            assert refused.status == 403
            assert str(refused) == f'forbidden: User "ann" cannot get path "{PATH}"'

    asyncio.run(scenario())
    folder.release()


def test_before_the_scheduler_runs_and_without_one_there_are_none(tmp_path: Path) -> None:
    async def status(metrics: ClusterMetrics | None) -> int:
        async with ApiServer(tmp_path / str(metrics is None), metrics=metrics) as server:
            kubeconfig = server.write_kubeconfig(tmp_path / "kubeconfig")
            return (await refusal(Client(find_access(str(kubeconfig))))).status

    assert asyncio.run(status(ClusterMetrics())) == 503
    assert asyncio.run(status(None)) == 404
