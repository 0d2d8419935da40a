"""Clients that others wrote: the official Python client, and the one for asyncio."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import kubernetes
import kubernetes.client as official
import kubernetes.watch
import kubernetes_asyncio as waiting
import pytest
import yaml

from stromboli.embedded.nodes.pod_logs import LogQuery
from tests.embedded.api_requests import pod
from tests.embedded.background_server import background_server

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of the clients' own making


class FixedLogs:
    """A log of three lines."""

    async def log(self, namespace: str, pod: str, query: LogQuery) -> AsyncIterator[bytes]:
        for number in range(3):
            yield f"{pod} says {number}\n".encode()


def test_the_official_client_lists_watches_patches_and_streams(tmp_path: Path) -> None:
    with background_server(tmp_path, crds=True, logs=FixedLogs()):
        kubernetes.config.load_kube_config(str(tmp_path / "kubeconfig"))
        with official.ApiClient() as client:
            core = official.CoreV1Api(client)
            made = core.create_namespaced_pod("default", pod("a", metadata={"labels": {"app": "x"}}))
            assert made.status.phase == "Pending"
            listed = core.list_namespaced_pod("default", label_selector="app=x", limit=10)
            assert [pod.metadata.name for pod in listed.items] == ["a"]
            patched = core.patch_namespaced_pod("a", "default", {"metadata": {"labels": {"more": "y"}}})
            assert patched.metadata.labels == {"app": "x", "more": "y"}
            target = official.V1Binding(
                metadata=official.V1ObjectMeta(name="a"),
                target=official.V1ObjectReference(kind="Node", name="n1"),
            )
            core.create_namespaced_pod_binding("a", "default", target, _preload_content=False)
            assert core.read_namespaced_pod_log("a", "default") == "a says 0\na says 1\na says 2\n"
            watch = kubernetes.watch.Watch()
            version = listed.metadata.resource_version
            seen = [
                (event["type"], event["object"].spec.node_name)
                for event in watch.stream(
                    core.list_namespaced_pod, "default", resource_version=version, timeout_seconds=1
                )
            ]
            assert seen == [("MODIFIED", None), ("MODIFIED", "n1")]
            lines = list(
                kubernetes.watch.Watch().stream(core.read_namespaced_pod_log, name="a", namespace="default")
            )
            assert lines == ["a says 0", "a says 1", "a says 2"]
            custom = official.CustomObjectsApi(client)
            queue = {
                "apiVersion": "scheduling.volcano.sh/v1beta1",
                "kind": "Queue",
                "metadata": {"name": "q"},
            }
            place = ("scheduling.volcano.sh", "v1beta1")
            custom.create_cluster_custom_object(*place, "queues", queue | {"spec": {"weight": 2}})
            custom.patch_cluster_custom_object(*place, "queues", "q", {"spec": {"weight": 3}})
            stored_queue = custom.get_cluster_custom_object(*place, "queues", "q")
            assert stored_queue["spec"]["weight"] == 3
            with pytest.raises(official.ApiException) as refused:
                core.read_namespaced_pod("nobody", "default")
            assert refused.value.status == 404
            core.delete_namespaced_pod("a", "default", grace_period_seconds=0)
            assert core.list_namespaced_pod("default").items == []


def test_manifests_are_created_by_the_official_client(tmp_path: Path) -> None:
    documents = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: main, image: nginx}]}
"""
    with background_server(tmp_path):
        kubernetes.config.load_kube_config(str(tmp_path / "kubeconfig"))
        with official.ApiClient() as client:
            kubernetes.utils.create_from_dict(client, yaml.safe_load(documents))
            apps = official.AppsV1Api(client)
            apps.patch_namespaced_deployment_scale("web", "default", {"spec": {"replicas": 5}})
            assert apps.read_namespaced_deployment("web", "default").spec.replicas == 5


def test_the_client_for_asyncio_lists_watches_patches_and_streams(tmp_path: Path) -> None:
    async def scenario() -> None:
        await waiting.config.load_kube_config(str(tmp_path / "kubeconfig"))
        async with waiting.client.ApiClient() as client:
            core = waiting.client.CoreV1Api(client)
            await core.create_namespaced_pod("default", pod("a"))
            listed = await core.list_namespaced_pod("default")
            assert [pod.metadata.name for pod in listed.items] == ["a"]
            seen = []

            async def follow() -> None:
                watch = waiting.watch.Watch()
                since = listed.metadata.resource_version
                how: dict[str, Any] = {"resource_version": since, "timeout_seconds": 10}
                async with watch.stream(core.list_namespaced_pod, "default", **how) as events:
                    async for event in events:
                        seen.append((event["type"], event["object"].metadata.labels))
                        if event["type"] == "DELETED":
                            break

            task = asyncio.create_task(follow())
            body = [{"op": "add", "path": "/metadata/labels", "value": {"x": "y"}}]
            await core.patch_namespaced_pod("a", "default", body)
            await core.delete_namespaced_pod("a", "default")
            await task
            assert seen == [("MODIFIED", {"x": "y"}), ("DELETED", {"x": "y"})]

    with background_server(tmp_path):
        asyncio.run(scenario())
