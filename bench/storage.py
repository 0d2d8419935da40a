"""Pods with a claim each that waits for its pod: local volumes that are there, or volumes that a driver makes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

from bench.manifests import HOSTNAME, NAMESPACE, Manifest, Request, gang, node, node_name

DRIVER = "disk.example.com"
StorageKind = Literal["local", "provisioned"]


def claimed_cluster(
    nodes: int, gangs: int, members: int, request: Request, kind: StorageKind
) -> Iterator[Manifest]:
    """A cluster whose nodes have a local volume each, or storage and attachments of a CSI driver; gangs that wait."""
    for index in range(nodes):
        yield node(index)
    yield {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": "fast"},
        "provisioner": "kubernetes.io/no-provisioner" if kind == "local" else DRIVER,
        "volumeBindingMode": "WaitForFirstConsumer",
    }
    yield from _local_volumes(nodes) if kind == "local" else _driver(nodes)
    for number in range(gangs):
        for manifest in gang(f"job-{number}", members, request):
            if manifest["kind"] == "Pod":
                name = manifest["metadata"]["name"]
                yield _claim(name)
                manifest["spec"]["volumes"] = [{"name": "data", "persistentVolumeClaim": {"claimName": name}}]
            yield manifest


def _claim(name: str) -> Manifest:
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": _storage({"resources": {"requests": {"storage": "5Gi"}}}),
        "status": {"phase": "Pending"},
    }


def _local_volumes(nodes: int) -> Iterator[Manifest]:
    for index in range(nodes):
        here = {"key": HOSTNAME, "operator": "In", "values": [node_name(index)]}
        affinity = {"required": {"nodeSelectorTerms": [{"matchExpressions": [here]}]}}
        yield {
            "apiVersion": "v1",
            "kind": "PersistentVolume",
            "metadata": {"name": f"local-{index:05d}"},
            "spec": _storage({"capacity": {"storage": "10Gi"}, "nodeAffinity": affinity}),
            "status": {"phase": "Available"},
        }


def _driver(nodes: int) -> Iterator[Manifest]:
    """A driver that attaches eight volumes to a node and reports how much each node can still have."""
    storage = {"apiVersion": "storage.k8s.io/v1"}
    yield {**storage, "kind": "CSIDriver", "metadata": {"name": DRIVER}, "spec": {"storageCapacity": True}}
    for index in range(nodes):
        name = node_name(index)
        driver = {"name": DRIVER, "nodeID": name, "allocatable": {"count": 8}}
        yield {**storage, "kind": "CSINode", "metadata": {"name": name}, "spec": {"drivers": [driver]}}
        yield {
            **storage,
            "kind": "CSIStorageCapacity",
            "metadata": {"name": name, "namespace": NAMESPACE},
            "storageClassName": "fast",
            "nodeTopology": {"matchLabels": {HOSTNAME: name}},
            "capacity": "20Gi",
        }


def _storage(spec: dict[str, Any]) -> dict[str, Any]:
    return {"storageClassName": "fast", "accessModes": ["ReadWriteOnce"], "volumeMode": "Filesystem", **spec}
