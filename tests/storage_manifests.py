"""Objects of storage as plain manifests, for tests of pods with volumes."""

from __future__ import annotations

from typing import Any

Manifest = dict[str, Any]
HOST = "kubernetes.io/hostname"
NO_PROVISIONER = "kubernetes.io/no-provisioner"
WAIT = "WaitForFirstConsumer"


def storage_class(
    name: str = "local", provisioner: str = NO_PROVISIONER, mode: str = WAIT, **more: Any
) -> Manifest:
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": name},
        "provisioner": provisioner,
        "volumeBindingMode": mode,
        **more,
    }


def claim(
    name: str, size: str = "5Gi", of: str = "local", volume: str = "", node: str = "", **spec: Any
) -> Manifest:
    """A claim that waits, or one that is bound to a volume; or one for which a node is selected."""
    annotations = {"pv.kubernetes.io/bind-completed": "yes"} if volume else {}
    if node:
        annotations["volume.kubernetes.io/selected-node"] = node
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name, "uid": f"claim-{name}", "annotations": annotations},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": of,
            "resources": {"requests": {"storage": size}},
            "volumeName": volume,
            **spec,
        },
        "status": {"phase": "Bound" if volume else "Pending"},
    }


def volume(
    name: str, size: str = "10Gi", *nodes: str, of: str = "local", claimed_by: str = "", **spec: Any
) -> Manifest:
    """A volume that some nodes reach, or all; free, or the volume of a claim."""
    here = {"key": HOST, "operator": "In", "values": list(nodes)}
    affinity = {"required": {"nodeSelectorTerms": [{"matchExpressions": [here]}]}}
    reference = {"namespace": "default", "name": claimed_by, "uid": f"claim-{claimed_by}"}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name, "labels": spec.pop("labels", {})},
        "spec": {
            "capacity": {"storage": size},
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": of,
            **({"nodeAffinity": affinity} if nodes else {}),
            **({"claimRef": reference} if claimed_by else {}),
            **spec,
        },
        "status": {"phase": "Bound" if claimed_by else "Available"},
    }


def disk(name: str, driver: str = "disk.example.com") -> list[Manifest]:
    """A claim that is bound to a volume of a CSI driver."""
    csi = {"driver": driver, "volumeHandle": f"handle-{name}"}
    return [
        volume(f"pv-{name}", claimed_by=name, of="csi", csi=csi),
        claim(name, of="csi", volume=f"pv-{name}"),
    ]


def csi_node(name: str, limit: int | None = None, driver: str = "disk.example.com") -> Manifest:
    allocatable = {"allocatable": {"count": limit}} if limit is not None else {}
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "CSINode",
        "metadata": {"name": name},
        "spec": {"drivers": [{"name": driver, "nodeID": name, **allocatable}]},
    }


def csi_driver(name: str = "disk.example.com") -> Manifest:
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "CSIDriver",
        "metadata": {"name": name},
        "spec": {"storageCapacity": True},
    }


def capacity(name: str, amount: str, of: str = "csi", node: str = "", **more: Any) -> Manifest:
    """How much of a class a driver can still provision for a node."""
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "CSIStorageCapacity",
        "metadata": {"name": name, "namespace": "default"},
        "storageClassName": of,
        "nodeTopology": {"matchLabels": {HOST: node or name}},
        "capacity": amount,
        **more,
    }


def attachment(node: str, volume: str, driver: str = "disk.example.com") -> Manifest:
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "VolumeAttachment",
        "metadata": {"name": f"{volume}-at-{node}"},
        "spec": {"attacher": driver, "nodeName": node, "source": {"persistentVolumeName": volume}},
    }


def claiming(*names: str) -> Manifest:
    """The part of a pod's spec that names claims."""
    return {"volumes": [{"name": name, "persistentVolumeClaim": {"claimName": name}} for name in names]}
