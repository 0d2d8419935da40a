"""Nodes with devices, and pods that claim one each: the claims are made from a template, as controllers would."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from bench.manifests import NAMESPACE, Manifest, Request, gang, node_name

DRIVER, CLASS, TEMPLATE = "gpu.example.com", "gpu", "one-gpu"
PER_NODE = 8
ENTRY = "gpu"


def _object(kind: str, name: str, spec: Manifest, **metadata: Any) -> Manifest:
    meta = {"name": name, **metadata}
    return {"apiVersion": "resource.k8s.io/v1", "kind": kind, "metadata": meta, "spec": spec}


def device_class() -> Manifest:
    return _object("DeviceClass", CLASS, {"selectors": [_selector(f'device.driver == "{DRIVER}"')]})


def _selector(expression: str) -> Manifest:
    return {"cel": {"expression": expression}}


def resource_slice(index: int) -> Manifest:
    """The devices of a node: no two are the same, as each has its own serial number."""
    name = node_name(index)
    devices = [
        {
            "name": f"gpu-{place}",
            "attributes": {"model": {"string": "h100"}, "uuid": {"string": f"{name}-{place}"}},
            "capacity": {"memory": {"value": "80Gi"}},
        }
        for place in range(PER_NODE)
    ]
    pool = {"name": name, "generation": 1, "resourceSliceCount": 1}
    return _object(
        "ResourceSlice",
        f"{name}-{DRIVER}",
        {"driver": DRIVER, "nodeName": name, "pool": pool, "devices": devices},
    )


def claim_spec() -> Manifest:
    model = _selector(f'device.attributes["{DRIVER}"].model == "h100"')
    exactly = {"deviceClassName": CLASS, "allocationMode": "ExactCount", "count": 1, "selectors": [model]}
    return {"devices": {"requests": [{"name": "r", "exactly": exactly}]}}


def claiming_gang(name: str, members: int, request: Request) -> Iterator[Manifest]:
    """A gang of which each pod has a claim."""
    for manifest in gang(name, members, request):
        if manifest["kind"] == "Pod":
            pod = manifest["metadata"]
            claim = f"{pod['name']}-{ENTRY}"
            manifest["spec"]["resourceClaims"] = [{"name": ENTRY, "resourceClaimTemplateName": TEMPLATE}]
            manifest["status"]["resourceClaimStatuses"] = [{"name": ENTRY, "resourceClaimName": claim}]
            pod["uid"] = f"uid-{pod['name']}"
            owner = {
                "apiVersion": "v1",
                "kind": "Pod",
                "name": pod["name"],
                "uid": pod["uid"],
                "controller": True,
            }
            yield _object("ResourceClaim", claim, claim_spec(), namespace=NAMESPACE, ownerReferences=[owner])
        yield manifest


def device_cluster(nodes: int, gangs: int, members: int, request: Request) -> Iterator[Manifest]:
    """Class, template, devices and claiming gangs."""
    yield device_class()
    yield _object("ResourceClaimTemplate", TEMPLATE, {"spec": claim_spec()}, namespace=NAMESPACE)
    for index in range(nodes):
        yield resource_slice(index)
    for index in range(gangs):
        yield from claiming_gang(f"job-{index}", members, request)
