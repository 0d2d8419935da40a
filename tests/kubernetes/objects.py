"""Objects for tests, as plain manifests."""

from __future__ import annotations

from typing import Any

GROUP_NAME = "scheduling.k8s.io/group-name"


def pod(name: str, namespace: str, group: str = "", cpu: str = "100m", **spec: Any) -> dict[str, Any]:
    """A pod for our scheduler, of a group if one is named."""
    container = {
        "name": "main",
        "image": "busybox",
        "resources": {"requests": {"cpu": cpu, "memory": "64Mi"}},
    }
    meta: dict[str, Any] = {"name": name, "namespace": namespace, "labels": {"app": group or name}}
    if group:
        meta["annotations"] = {GROUP_NAME: group}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": meta,
        "spec": {"schedulerName": "volcano", "containers": [container], **spec},
    }


def node(name: str, cpu: str = "32", memory: str = "128Gi", pods: str = "110") -> dict[str, Any]:
    """A node that KWOK simulates."""
    sizes = {"cpu": cpu, "memory": memory, "pods": pods}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}},
        "status": {"allocatable": sizes, "capacity": sizes},
    }


def group(name: str, namespace: str, minimum: int, queue: str = "default") -> dict[str, Any]:
    return {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "PodGroup",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"minMember": minimum, "queue": queue},
    }


def queue(name: str, weight: int = 1) -> dict[str, Any]:
    return {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "Queue",
        "metadata": {"name": name},
        "spec": {"weight": weight, "reclaimable": True},
    }


def binding(pod: str, namespace: str, node: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"name": pod, "namespace": namespace},
        "target": {"kind": "Node", "name": node},
    }
