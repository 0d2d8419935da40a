"""The end of pods that are deleted, on simulated and on real nodes."""

import asyncio

import pytest

from stromboli.embedded.http.api_server import ApiServer
from stromboli.kube.api_client import Client
from stromboli.kube.cluster_access import find_access
from tests.embedded.nodes.node_services import PODS, running_nodes


@pytest.mark.parametrize("group", ["1x8cpu", "1x8cpu,real"])
def test_a_pod_that_a_finalizer_keeps_ends_all_the_same(tmp_path, group):
    finalizers = {"metadata": {"finalizers": ["example.com/x"]}}

    def terminated(pod):
        meta, (container,) = pod["metadata"], pod["status"]["containerStatuses"]
        return meta["deletionGracePeriodSeconds"] == 0 and container["state"].get("terminated")

    async def scenario():
        async with running_nodes(tmp_path, group) as cluster:
            for name in ("stopped", "restarted"):
                await cluster.pod(name, command=["sleep", "infinity"])
                await cluster.client.patch(PODS, name, finalizers, "default")
                await cluster.phase(name, "Running")
            await cluster.delete("stopped")
            await cluster.phase("stopped", "Failed")
            await cluster.until("stopped", terminated)
        async with ApiServer(tmp_path / "data", tls=False) as server:
            access = find_access(str(server.write_kubeconfig(tmp_path / "kubeconfig")))
            async with Client(access) as client:
                await client.delete(PODS, "restarted", "default")
        async with running_nodes(tmp_path, group) as cluster:
            await cluster.phase("restarted", "Failed")
            await cluster.until("restarted", terminated)

    asyncio.run(scenario())
