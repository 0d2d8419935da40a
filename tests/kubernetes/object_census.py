"""All objects of a cluster, to be compared with what they were before."""

from __future__ import annotations

import json
import time
import urllib.error
from typing import Any

from tests.kubernetes.controlplane import ControlPlane

Json = Any
Key = tuple[str, str, str, str]
"""Group, kind, namespace and name."""
MOVING = {"ComponentStatus", "Endpoints", "EndpointSlice", "Event", "Lease"}
"""Kinds that components write all the time, or that the API server keeps for itself."""
ATTEMPTS = 20
VOLATILE = {"resourceVersion", "managedFields", "generation", "uid", "creationTimestamp"}


def census(plane: ControlPlane) -> dict[Key, Json]:
    """Every object that can be listed, of all groups in their preferred version."""
    groups = json.loads(plane.request("GET", "/apis"))["groups"]
    roots = ["/api/v1", *(f"/apis/{group['preferredVersion']['groupVersion']}" for group in groups)]
    return {key: item for root in roots for key, item in _listed(plane, root)}


def _listed(plane: ControlPlane, root: str) -> list[tuple[Key, Json]]:
    resources = json.loads(plane.request("GET", root))["resources"]
    group = root.removeprefix("/apis/").rpartition("/")[0] if root.startswith("/apis") else ""
    return [
        ((group, resource["kind"], item["metadata"].get("namespace", ""), item["metadata"]["name"]), item)
        for resource in resources
        if "list" in resource["verbs"] and resource["kind"] not in MOVING
        for item in _items(plane, f"{root}/{resource['name']}")
    ]


def _items(plane: ControlPlane, path: str) -> list[Json]:
    """All objects of a kind; right after its CRD was written, the API server asks for patience."""
    for _ in range(ATTEMPTS):
        try:
            return list(json.loads(plane.request("GET", path))["items"])
        except urllib.error.HTTPError as error:
            with error:
                if error.code != 429:
                    raise
            time.sleep(1)
    raise TimeoutError(f"{path} cannot be listed")


def steady(item: Json) -> Json:
    """An object without what changes with every write."""
    meta = {key: part for key, part in item["metadata"].items() if key not in VOLATILE}
    return {**item, "metadata": meta}
