"""`metrics.k8s.io` as clients of it see it."""

import asyncio
import json

from stromboli.kube.api_resources import Resource
from stromboli.kube.request import ApiError, Request
from tests.embedded.api_requests import running
from tests.embedded.nodes.node_services import NODES, running_nodes

POD_METRICS = Resource("metrics.k8s.io", "v1beta1", "pods", "PodMetrics")
NODE_METRICS = Resource("metrics.k8s.io", "v1beta1", "nodes", "NodeMetrics", namespaced=False)


async def items(cluster, resource, namespace="", **query):
    return json.loads(await cluster.client.list(resource, namespace, **query))["items"]


def test_usage_of_pods_and_nodes_is_listed_by_label_and_namespace(tmp_path):
    request = {"resources": {"requests": {"cpu": "2", "memory": "1Gi"}}}

    async def scenario():
        async with running_nodes(tmp_path, "2x8cpu,32Gi") as cluster:
            await cluster.pod("asks", container=request)
            await cluster.pod("ended", command=["true"])
            await cluster.pod("idle", node="n2")
            await cluster.phase("asks", "Running")
            await cluster.phase("idle", "Running")
            await cluster.phase("ended", "Succeeded")
            pods = await items(cluster, POD_METRICS, "default")
            assert [each["metadata"]["name"] for each in pods] == ["asks", "idle"]
            (container,) = pods[0]["containers"]
            assert container["name"] == "main"
            assert 0.6e9 < int(container["usage"]["cpu"].removesuffix("n")) < 1.8e9
            assert pods[0]["window"] == "15s"
            assert await items(cluster, POD_METRICS, "kube-system") == []
            assert len(await items(cluster, POD_METRICS)) == 2
            named = await items(cluster, NODE_METRICS, labelSelector="kubernetes.io/hostname=n1")
            assert [each["metadata"]["name"] for each in named] == ["n1"]
            used = int(named[0]["usage"]["cpu"].removesuffix("n"))
            assert used > int(container["usage"]["cpu"].removesuffix("n"))
            alone = json.loads(await cluster.client.get(POD_METRICS, "asks", "default"))
            assert alone["kind"] == "PodMetrics"
            assert alone["containers"][0]["usage"].keys() == {"cpu", "memory"}
            for name in ("ended", "nobody"):
                try:
                    await cluster.client.get(POD_METRICS, name, "default")
                    raise AssertionError(f"{name} has usage")
                except ApiError as error:
                    assert error.status == 404
            failed = {"metadata": {"annotations": {"stromboli.sh/failed": "true"}}}
            await cluster.client.patch(NODES, "n1", failed)
            await cluster.gone("asks")
            assert [each["metadata"]["name"] for each in await items(cluster, NODE_METRICS)] == ["n2"]

    asyncio.run(scenario())


def test_usage_on_a_real_node_is_measured(tmp_path):
    async def scenario():
        async with running_nodes(tmp_path, "1x8cpu,real") as cluster:
            await cluster.pod("busy", command=["sh", "-c", "while :; do :; done"])
            await cluster.phase("busy", "Running")
            (pod,) = await items(cluster, POD_METRICS, "default")
            (node,) = await items(cluster, NODE_METRICS)
            usage = pod["containers"][0]["usage"]
            assert int(usage["cpu"].removesuffix("n")) > 10_000_000
            assert int(usage["memory"].removesuffix("Ki")) > 100
            assert int(node["usage"]["cpu"].removesuffix("n")) > 10_000_000

    asyncio.run(scenario())


def test_a_server_without_nodes_has_no_such_api_and_one_with_nodes_only_reads(tmp_path):
    path = "/apis/metrics.k8s.io/v1beta1/nodes"

    async def scenario():
        async with running(tmp_path / "alone", tls=False) as api:
            assert (await api.request("GET", path))[0] == 404
            groups = [group["name"] for group in (await api.get("/apis"))["groups"]]
            assert "metrics.k8s.io" not in groups
            view = await api.get(
                "/apis/rbac.authorization.k8s.io/v1/clusterroles/system:aggregated-metrics-reader"
            )
            assert view["metadata"]["labels"]["rbac.authorization.k8s.io/aggregate-to-view"] == "true"
        async with running_nodes(tmp_path, "1x8cpu") as cluster:
            listed = json.loads(await cluster.client.send(Request("GET", "/apis/metrics.k8s.io/v1beta1"), 5))
            assert {(each["name"], *each["verbs"]) for each in listed["resources"]} == {
                ("nodes", "get", "list"),
                ("pods", "get", "list"),
            }
            try:
                await cluster.client.send(Request("DELETE", f"{path}/n1"), 5)
                raise AssertionError("it was deleted")
            except ApiError as error:
                assert error.status == 405

    asyncio.run(scenario())
