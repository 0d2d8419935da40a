"""The nodes that a user requests: created, or brought up to date if they exist."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable
from contextlib import suppress

import msgspec

from stromboli.embedded.nodes import node_annotations
from stromboli.embedded.nodes.node_devices import SLICES, annotation_patch, slice_name
from stromboli.embedded.nodes.node_network import label_patch
from stromboli.embedded.nodes.node_report import status_report
from stromboli.embedded.nodes.node_types import Content, NodeView
from stromboli.embedded.nodes.pod_addresses import PodAddresses
from stromboli.embedded.nodes.write_queue import NODES
from stromboli.kube.api_client import Client
from stromboli.kube.request import ApiError

WIDTH = 64
"""Nodes that are registered at a time."""


async def register_nodes(client: Client, manifests: list[Content], existing: Iterable[Content]) -> None:
    """Create these nodes, or update the labels, capacity and GPUs of those that exist."""
    nodes = {str(node["metadata"]["name"]): node for node in existing}
    addresses = PodAddresses()
    for name, node in nodes.items():
        addresses.adopt(name, (node.get("spec") or {}).get("podCIDR", ""))
    for begin in range(0, len(manifests), WIDTH):
        await asyncio.gather(
            *(
                _update(client, manifest, old)
                if (old := nodes.get(manifest["metadata"]["name"])) is not None
                else client.create(NODES, _reported(manifest, addresses))
                for manifest in manifests[begin : begin + WIDTH]
            )
        )


def _reported(node: Content, addresses: PodAddresses) -> Content:
    """A new node, with what its kubelet reports at once."""
    name, kind = node["metadata"]["name"], node["metadata"]["labels"][node_annotations.NODE]
    cidr = addresses.range(name).cidr
    view = msgspec.convert({"metadata": {"name": name}, "status": node["status"]}, NodeView)
    report = status_report(view, kind, addresses.host(name, kind), time.time())
    return {
        **node,
        "spec": {**node.get("spec", {}), "podCIDR": cidr, "podCIDRs": [cidr]},
        "status": {**node["status"], **report},
    }


async def _update(client: Client, node: Content, old: Content) -> None:
    meta, name = node["metadata"], node["metadata"]["name"]
    annotations = annotation_patch(meta.get("annotations") or {})
    labels = label_patch(meta["labels"])
    if meta["labels"][node_annotations.NODE] == node_annotations.REAL:  # GPUs that it has no more go
        labels = {**dict.fromkeys(node_annotations.GPU_LABELS), **labels}
    patch = {"labels": labels, "annotations": annotations}
    await client.patch(NODES, name, {"metadata": patch})
    status = dict(node["status"])
    for amounts in {"capacity", "allocatable"} & status.keys():  # resources that it has no more go
        gone = (old.get("status") or {}).get(amounts) or {}
        status[amounts] = {**dict.fromkeys(gone), **status[amounts]}
    await client.patch(NODES, name, {"status": status}, subresource="status")
    had = (old["metadata"].get("annotations") or {}).get(node_annotations.DEVICES)
    if had and annotations[node_annotations.DEVICES] is None:
        with suppress(ApiError):  # somebody has deleted it
            await client.delete(SLICES, slice_name(name))
