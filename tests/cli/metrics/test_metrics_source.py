"""Metrics of a pod that leads are read through a forwarded port where there is no proxy."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from stromboli.cli.cluster.cluster_errors import ClusterError
from stromboli.cli.cluster.cluster_session import ClusterSession
from stromboli.cli.metrics.metrics_source import ClusterSource
from stromboli.kube.api_resources import LEASES
from tests.cli.metrics.metric_pages import healthy
from tests.embedded.nodes.node_services import NodeCluster, running_nodes
from tests.serving import serving


async def led(cluster: NodeCluster, pod: str, *arguments: str) -> ClusterSource:
    """The source of metrics, with a pod that runs and holds the Lease."""
    await cluster.pod(pod, command=["sh", "-c", "exec sleep 60"], container={"args": [*arguments]})
    await cluster.phase(pod, "Running")
    lease = {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": "volcano"},
        "spec": {"holderIdentity": f"{pod}_1"},
    }
    await cluster.client.create(LEASES, lease, "default")
    return ClusterSource(ClusterSession(cluster.client, None, "default"), "default")


def test_the_port_of_the_pod_that_leads_is_forwarded(tmp_path: Path) -> None:
    async def scenario(url: str) -> None:
        async with running_nodes(tmp_path, "1x4cpu,real") as cluster:
            source = await led(cluster, "scheduler-1", f"--listen-address=:{url.rpartition(':')[2]}")
            for _ in range(2):  # by the way that is known, the second time
                page = await source.read()
                assert b"\nstromboli_leader 1.0\n" in page.text
                assert page.place == "pod default/scheduler-1, which leads, by a forwarded port"

    with serving(lambda _: healthy().text()) as server:
        asyncio.run(scenario(server.url))
        assert {asked.path for asked in server.asked} == {"/metrics"}


def test_a_leader_that_has_no_metrics_is_named_with_its_flag(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running_nodes(tmp_path, "1x4cpu,real") as cluster:
            source = await led(cluster, "scheduler-1", "--listen-address=127.0.0.1:1")
            with pytest.raises(ClusterError, match="pod default/scheduler-1 leads without --enable-metrics"):
                await source.read()

    asyncio.run(scenario())
