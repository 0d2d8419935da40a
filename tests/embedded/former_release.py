"""A data folder as a release left it that had no marks, addresses of Services, leases, or controllers of workloads."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from stromboli.embedded.data_format import NAME
from stromboli.embedded.http.api_server import ApiServer
from stromboli.embedded.objects.api_service import is_published
from stromboli.embedded.store.object_store import Store
from stromboli.embedded.store.records import Key

Content = dict[str, Any]
LABELS = {"app": "old"}
TEMPLATE = {"metadata": {"labels": LABELS}, "spec": {"containers": [{"name": "main", "image": "none"}]}}
OBJECTS: tuple[tuple[str, str, Content], ...] = (
    (
        "nodes",
        "",
        {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": "n1", "labels": {"stromboli.sh/node": "simulated"}},
            "spec": {"podCIDR": "10.64.1.0/24"},
            "status": {
                "capacity": {"cpu": "8", "memory": "32Gi", "pods": "110"},
                "allocatable": {"cpu": "8", "memory": "32Gi", "pods": "110"},
            },
        },
    ),
    (
        "services",
        "default",
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": "old"},
            "spec": {
                "type": "ClusterIP",
                "selector": LABELS,
                "sessionAffinity": "None",
                "ports": [{"port": 80, "protocol": "TCP", "targetPort": 80}],
            },
        },
    ),
    (
        "deployments.apps",
        "default",
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": "old", "generation": 1},
            "spec": {
                "replicas": 2,
                "selector": {"matchLabels": LABELS},
                "template": TEMPLATE,
            },
        },
    ),
    (
        "replicationcontrollers",
        "default",
        {
            "apiVersion": "v1",
            "kind": "ReplicationController",
            "metadata": {"name": "older", "generation": 1},
            "spec": {"replicas": 2, "template": {**TEMPLATE, "metadata": {"labels": {"app": "older"}}}},
        },
    ),
    (
        "replicasets.apps",
        "default",
        {
            "apiVersion": "apps/v1",
            "kind": "ReplicaSet",
            "metadata": {"name": "lost", "generation": 1},
            "spec": {
                "replicas": 2,
                "selector": {"matchExpressions": [{"key": "app", "operator": "DoesNotExist"}]},
                "template": TEMPLATE,
            },
        },
    ),
    (
        "horizontalpodautoscalers.autoscaling",
        "default",
        {
            "apiVersion": "autoscaling/v2",
            "kind": "HorizontalPodAutoscaler",
            "metadata": {"name": "old"},
            "spec": {
                "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "old"},
                "maxReplicas": 3,
            },
        },
    ),
)


def make_folder(path: Path) -> None:
    """A folder with a few objects in it, which no cluster uses."""
    asyncio.run(_make_folder(path))


async def _make_folder(path: Path) -> None:
    async with ApiServer(path, crds=True, storage_class=True):
        pass
    (path / NAME).unlink()
    store = Store(path / "objects.db")
    for resource in ("services", "endpoints", "endpointslices.discovery.k8s.io"):
        for record in list(store.list(resource)):
            assert is_published(record.key)
            store.remove(record.key, record.object())
    for number, (resource, namespace, content) in enumerate(OBJECTS):
        meta = {**content["metadata"], "uid": f"old-{number}", "creationTimestamp": "2026-01-01T00:00:00Z"}
        meta |= {"namespace": namespace} if namespace else {}
        store.put(Key(resource, namespace, meta["name"]), {**content, "metadata": meta})
    await store.wait_committed()
    await store.close()
