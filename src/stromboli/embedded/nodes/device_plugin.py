"""What drivers and device plugins of GPUs do on a real node, done for the nodes that we run."""

from __future__ import annotations

from contextlib import suppress

from stromboli.api import card_names, names
from stromboli.embedded.nodes import node_annotations
from stromboli.embedded.nodes.node_devices import (
    DEVICE_CLASSES,
    DRIVER,
    SLICES,
    BadDevices,
    device_class,
    parse_gpus,
    resource_slice,
    slice_name,
)
from stromboli.embedded.nodes.node_types import NodePod, NodeView
from stromboli.embedded.nodes.write_queue import WriteQueue


class DevicePlugin:
    """Of all nodes that we run."""

    def __init__(self, writes: WriteQueue) -> None:
        self._writes = writes
        self._published: dict[str, tuple[str, str]] = {}
        """Uids of nodes and their GPUs, as published, by the node's name."""

    def publish(self, node: NodeView) -> None:
        """Publish the GPUs of a node for DRA, as its driver would, or withdraw them."""
        text = node.metadata.annotations.get(node_annotations.DEVICES, "")
        wanted = node.metadata.uid, text
        if wanted == self._published.get(node.name, (node.metadata.uid, "")):
            return
        self._published[node.name] = wanted
        if not text:
            self._writes.delete(SLICES, slice_name(node.name))
            return
        try:
            content = resource_slice(node.name, node.metadata.uid, parse_gpus(text))
        except BadDevices as error:
            message = f"annotation {node_annotations.DEVICES}: {error}"
            self._writes.record_node_event(node.name, names.WARNING, "InvalidDevices", message)
            return
        self._writes.apply(DEVICE_CLASSES, device_class())
        self._writes.apply(SLICES, content)

    def restore(self, deleted: str) -> None:
        """Publish a slice again that somebody deleted, if it is one of a node that has its GPUs."""
        name = deleted.removesuffix(f"-{DRIVER}")
        uid, text = self._published.get(name, ("", ""))
        if text and deleted == slice_name(name):
            with suppress(BadDevices):  # it never had a slice, and was told why
                self._writes.apply(SLICES, resource_slice(name, uid, parse_gpus(text)))

    def forget(self, name: str) -> None:
        """A node is gone; its slice goes with it."""
        self._published.pop(name, None)

    def allocate_cards(self, pod: NodePod) -> None:
        """Tell that a pod has its shared cards, and unlock the node."""
        if pod.metadata.annotations.get(card_names.BIND_PHASE) != card_names.ALLOCATING or pod.finished:
            return
        self._writes.patch_pod(pod, {"metadata": {"annotations": {card_names.BIND_PHASE: "success"}}})
        unlocked = {"metadata": {"annotations": {card_names.VGPU_LOCK: None}}}
        self._writes.patch_node(pod.spec.node_name, unlocked)
