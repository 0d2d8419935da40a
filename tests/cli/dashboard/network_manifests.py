"""Manifests of nodes, of pods on them and of the HyperNodes that they are in."""

from __future__ import annotations

from typing import Any

Manifest = dict[str, Any]


def node(
    name: str,
    cpu: str = "16",
    gpus: int = 0,
    state: str = "Ready",
    cordoned: bool = False,
    labels: dict[str, str] | None = None,
) -> Manifest:
    """A node with 64Gi of memory and room for 110 pods."""
    resources = {"cpu": cpu, "memory": "64Gi", "pods": "110"}
    if gpus:
        resources["nvidia.com/gpu"] = str(gpus)
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels or {}},
        "spec": {"unschedulable": cordoned},
        "status": {
            "allocatable": resources,
            "capacity": resources,
            "conditions": [{"type": "Ready", "status": "True" if state == "Ready" else "False"}],
        },
    }


def pod(
    name: str,
    on: str = "",
    cpu: str = "4",
    gpus: int = 0,
    group: str = "train",
    phase: str = "",
    namespace: str = "default",
) -> Manifest:
    """A pod of a PodGroup, of a DaemonSet if there is none; it waits unless it is on a node."""
    requests = {"cpu": cpu, "memory": "1Gi", **({"nvidia.com/gpu": str(gpus)} if gpus else {})}
    annotations = {"scheduling.k8s.io/group-name": group} if group else {}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace, "annotations": annotations},
        "spec": {"nodeName": on, "containers": [{"name": "main", "resources": {"requests": requests}}]},
        "status": {"phase": phase or ("Running" if on else "Pending")},
    }


def pod_group(name: str = "train", phase: str = "Running", namespace: str = "default") -> Manifest:
    return {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "PodGroup",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"minMember": 1, "queue": "default"},
        "status": {"phase": phase},
    }


def hyper_node(name: str, tier: int, *members: str, tier_name: str = "", of: str = "Node") -> Manifest:
    """A HyperNode with members by name: nodes, or other HyperNodes."""
    return {
        "apiVersion": "topology.volcano.sh/v1alpha1",
        "kind": "HyperNode",
        "metadata": {"name": name},
        "spec": {
            "tier": tier,
            "tierName": tier_name,
            "members": [{"type": of, "selector": {"exactMatch": {"name": member}}} for member in members],
        },
    }


def two_racks() -> list[Manifest]:
    """Four nodes in two racks below one spine; 8 CPUs of rack-a and 4 of rack-b are in use."""
    return [
        *(node(name) for name in ("n-1", "n-2", "n-3", "n-4")),
        hyper_node("rack-a", 1, "n-1", "n-2", tier_name="rack"),
        hyper_node("rack-b", 1, "n-3", "n-4", tier_name="rack"),
        hyper_node("spine", 2, "rack-a", "rack-b", of="HyperNode"),
        pod_group(),
        pod("train-0", on="n-1"),
        pod("train-1", on="n-1"),
        pod("train-2", on="n-3"),
    ]
