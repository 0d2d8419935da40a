"""Manifests of devices: classes, slices of nodes, claims and their templates."""

from __future__ import annotations

from typing import Any

Manifest = dict[str, Any]
RESOURCE_API = "resource.k8s.io/v1"
DRIVER = "gpu.example.com"


def _object(kind: str, name: str, spec: Manifest, **metadata: Any) -> Manifest:
    return {"apiVersion": RESOURCE_API, "kind": kind, "metadata": {"name": name, **metadata}, "spec": spec}


def device_class(name: str = "gpu", **spec: Any) -> Manifest:
    """A class of all devices of the driver."""
    selector = {"cel": {"expression": f'device.driver == "{DRIVER}"'}}
    return _object("DeviceClass", name, {"selectors": [selector], **spec})


def resource_slice(node: str, devices: int | list[Manifest] = 2, pool: str = "", **spec: Any) -> Manifest:
    """The devices `g0`, `g1`, ... of a node, or those given; without a node the rest of the spec says for whom."""
    listed = [{"name": f"g{place}"} for place in range(devices)] if isinstance(devices, int) else devices
    where = {"nodeName": node} if node else {}
    generation = {"name": pool or node, "generation": 1, "resourceSliceCount": 1}
    fields = {"driver": DRIVER, "pool": generation, "devices": listed, **where, **spec}
    return _object("ResourceSlice", f"{pool or node}-slice", fields)


def request(count: int = 1, name: str = "r", device_class: str = "gpu", **exactly: Any) -> Manifest:
    return {"name": name, "exactly": {"deviceClassName": device_class, "count": count, **exactly}}


def claim(name: str, count: int = 1, *requests: Manifest, **metadata: Any) -> Manifest:
    """A claim for devices of the class `gpu`, or with these requests."""
    listed = list(requests) or [request(count)]
    return _object("ResourceClaim", name, {"devices": {"requests": listed}}, **metadata)


def allocated(claim: Manifest, node: str, *devices: str, reserved_for: tuple[Manifest, ...] = ()) -> Manifest:
    """The same claim with these devices of a node."""
    results = [{"request": "r", "driver": DRIVER, "pool": node, "device": device} for device in devices]
    field = {"key": "metadata.name", "operator": "In", "values": [node]}
    selector = {"nodeSelectorTerms": [{"matchFields": [field]}]}
    status = {"allocation": {"devices": {"results": results}, "nodeSelector": selector}}
    return {**claim, "status": {**status, "reservedFor": list(reserved_for)}}


def reserved(pod: str, namespace: str = "default") -> Manifest:
    """A pod as the consumer of a claim, with the uid that manifests without one get."""
    return {"resource": "pods", "name": pod, "uid": f"Pod/{namespace}/{pod}"}


def uses(*claims: str) -> Manifest:
    """The part of a pod's spec that names claims."""
    return {
        "resourceClaims": [
            {"name": f"c{place}", "resourceClaimName": name} for place, name in enumerate(claims)
        ]
    }
