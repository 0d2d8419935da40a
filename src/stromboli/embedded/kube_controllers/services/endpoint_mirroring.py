"""Endpoints that somebody makes for a Service without a selector, mirrored into EndpointSlices."""

from __future__ import annotations

from collections.abc import Sequence

from stromboli.api.schemas.services.service_fields import family_of
from stromboli.embedded.kinds.kind import Content
from stromboli.embedded.kube_controllers.services.endpoint_slices import (
    MANAGED_BY,
    SERVICE_NAME,
    SliceChanges,
)
from stromboli.embedded.kube_controllers.services.service import ports_key

CONTROLLER = "endpointslicemirroring-controller.k8s.io"
SKIP_MIRROR = "endpointslice.kubernetes.io/skip-mirror"
MOST_MIRRORED = 1000
"""Addresses of a subset, as in Kubernetes."""


def mirror_changes(endpoints: Content | None, existing: Sequence[Content]) -> SliceChanges:
    """What makes slices show Endpoints, of which there may be none."""
    changes = SliceChanges()
    left = {_identity(each): each for each in existing}
    for wanted in _mirrored(endpoints) if endpoints is not None else ():
        current = left.pop(_identity(wanted), None)
        if current is None:
            changes.create.append(wanted)
            continue
        same = current.get("endpoints") == wanted["endpoints"]
        if not same or current["metadata"].get("labels") != wanted["metadata"]["labels"]:
            current["endpoints"], current["metadata"]["labels"] = (
                wanted["endpoints"],
                wanted["metadata"]["labels"],
            )
            changes.update.append(current)
    changes.delete += left.values()
    return changes


def _identity(slice: Content) -> tuple[str, bytes]:
    return str(slice.get("addressType")), ports_key(slice.get("ports") or ())


def _mirrored(endpoints: Content) -> list[Content]:
    meta = endpoints["metadata"]
    if (meta.get("labels") or {}).get(SKIP_MIRROR) == "true":
        return []
    slices: dict[tuple[str, bytes], Content] = {}
    for subset in endpoints.get("subsets") or ():
        ports = [{"name": "", **port} for port in subset.get("ports") or ()]
        entries = [(entry, True) for entry in subset.get("addresses") or ()]
        entries += [(entry, False) for entry in subset.get("notReadyAddresses") or ()]
        for entry, ready in entries[:MOST_MIRRORED]:
            if family := family_of(entry["ip"]):
                key = (family, ports_key(ports))
                slice = slices.setdefault(key, _new_slice(endpoints, family, ports))
                slice["endpoints"].append(_endpoint(entry, ready))
    return list(slices.values())


def _endpoint(entry: Content, ready: bool) -> Content:
    kept: Content = {name: entry[name] for name in ("hostname", "nodeName", "targetRef") if name in entry}
    return {"addresses": [entry["ip"]], "conditions": {"ready": ready}, **kept}


def _new_slice(endpoints: Content, family: str, ports: list[Content]) -> Content:
    meta = endpoints["metadata"]
    owner = {
        "apiVersion": "v1",
        "kind": "Endpoints",
        "name": meta["name"],
        "uid": meta["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }
    labels = {**(meta.get("labels") or {}), SERVICE_NAME: meta["name"], MANAGED_BY: CONTROLLER}
    return {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {
            "generateName": f"{meta['name']}-",
            "namespace": meta["namespace"],
            "labels": labels,
            "ownerReferences": [owner],
        },
        "addressType": family,
        "endpoints": [],
        "ports": ports,
    }
