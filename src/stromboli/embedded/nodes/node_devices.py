"""GPUs of nodes: as devices of a ResourceSlice for DRA, or as cards that several pods share (vGPU)."""

from __future__ import annotations

import re
import uuid
from collections.abc import Mapping
from dataclasses import dataclass

from stromboli.api import card_names
from stromboli.api.resources.quantity import QuantityError, whole
from stromboli.embedded.nodes import node_annotations
from stromboli.embedded.nodes.node_types import Content
from stromboli.kube.api_resources import Resource

DRIVER = "gpu.stromboli.sh"
"""Of the devices of our nodes; their class has the same name."""
SLICES = Resource("resource.k8s.io", "v1", "resourceslices", "ResourceSlice", namespaced=False)
DEVICE_CLASSES = Resource("resource.k8s.io", "v1", "deviceclasses", "DeviceClass", namespaced=False)
DEFAULT_MEMORY, DEFAULT_MODEL = "80Gi", "simulated"
MAX_GPUS = 128
"""Of a node: as many as a slice may have."""
SHARES = 10
"""Pods that may share a card."""
_MEBIBYTE = 1024 * 1024
_MODEL = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_. ]{0,62}[A-Za-z0-9])?")
_EXAMPLE = "for example 8, 8x80Gi or 8x80Gi,H100"


class BadDevices(ValueError):
    """Devices that cannot be read; says what would be right."""


@dataclass(frozen=True, slots=True)
class Gpus:
    """The equal GPUs of a node."""

    count: int
    memory: str = DEFAULT_MEMORY
    model: str = DEFAULT_MODEL

    def __str__(self) -> str:
        return f"{self.count}x{self.memory},{self.model}"


def parse_gpus(text: str) -> Gpus:
    """`COUNT[xMEMORY][,MODEL]`, as in the annotation of a node."""
    size, comma, model = text.strip().partition(",")
    count, times, memory = size.partition("x")
    return checked_gpus(
        count.strip(), memory.strip() if times else DEFAULT_MEMORY, model.strip() if comma else DEFAULT_MODEL
    )


def checked_gpus(count: str, memory: str = DEFAULT_MEMORY, model: str = DEFAULT_MODEL) -> Gpus:
    if not count.isdecimal() or not 1 <= len(count) <= 4 or not 1 <= int(count) <= MAX_GPUS:
        raise BadDevices(f"{count[:40]!r} GPUs: at least 1 and at most {MAX_GPUS}; {_EXAMPLE}")
    try:
        if whole(memory) < _MEBIBYTE:
            raise BadDevices(f"memory of a GPU {memory[:40]!r}: at least 1Mi; {_EXAMPLE}")
    except QuantityError as error:
        raise BadDevices(f"memory of a GPU: {error}; {_EXAMPLE}") from None
    if not _MODEL.fullmatch(model):
        raise BadDevices(
            f"model of a GPU {model[:80]!r}: letters, digits, blanks, '-', '_' and '.'; {_EXAMPLE}"
        )
    return Gpus(int(count), memory, model)


def _uuid(node: str, index: int) -> str:
    """Always the same for the same card."""
    return f"GPU-{uuid.uuid5(uuid.NAMESPACE_DNS, f'{index}.{node}.{DRIVER}')}"


# -- DRA


def slice_name(node: str) -> str:
    return f"{node}-{DRIVER}"


def resource_slice(node: str, uid: str, gpus: Gpus) -> Content:
    """The GPUs of a node, as its driver would publish them; they go with the node."""
    return {
        "apiVersion": SLICES.api_version,
        "kind": SLICES.kind,
        "metadata": {
            "name": slice_name(node),
            "ownerReferences": [{"apiVersion": "v1", "kind": "Node", "name": node, "uid": uid}],
        },
        "spec": {
            "driver": DRIVER,
            "nodeName": node,
            "pool": {"name": node, "generation": 1, "resourceSliceCount": 1},
            "devices": [
                {
                    "name": f"gpu-{index}",
                    "attributes": {
                        "index": {"int": index},
                        "model": {"string": gpus.model},
                        "uuid": {"string": _uuid(node, index)},
                    },
                    "capacity": {"memory": {"value": gpus.memory}},
                }
                for index in range(gpus.count)
            ],
        },
    }


def device_class() -> Content:
    """All GPUs of our nodes."""
    return {
        "apiVersion": DEVICE_CLASSES.api_version,
        "kind": DEVICE_CLASSES.kind,
        "metadata": {"name": DRIVER},
        "spec": {"selectors": [{"cel": {"expression": f'device.driver == "{DRIVER}"'}}]},
    }


# -- vGPU


def vgpu_annotations(node: str, gpus: Gpus) -> dict[str, str]:
    """The cards as Volcano's device plugin registers them."""
    memory = whole(gpus.memory) // _MEBIBYTE
    cards = [
        f"{_uuid(node, index)},{SHARES},{memory},{card_names.NVIDIA}-{gpus.model},true,{card_names.HAMI_CORE}"
        for index in range(gpus.count)
    ]
    return {card_names.VGPU_REGISTER: ":".join(cards) + ":"}


def vgpu_capacity(gpus: Gpus) -> dict[str, str]:
    return {
        card_names.VGPU_NUMBER: str(gpus.count * SHARES),
        card_names.VGPU_MEMORY: str(gpus.count * (whole(gpus.memory) // _MEBIBYTE)),
        card_names.VGPU_CORES: str(gpus.count * 100),
    }


def add_gpus(node: Content, gpus: Gpus, shared: bool) -> None:
    """Give a Node manifest GPUs that are claimed one by one, or cards that pods share."""
    meta, status = node["metadata"], node["status"]
    if shared:
        added = vgpu_annotations(meta["name"], gpus)
        for amounts in (status["capacity"], status["allocatable"]):
            amounts.update(vgpu_capacity(gpus))
    else:
        added = {node_annotations.DEVICES: str(gpus)}
    meta["annotations"] = {**(meta.get("annotations") or {}), **added}


def annotation_patch(annotations: Mapping[str, str]) -> dict[str, str | None]:
    """What to merge into the annotations of a node that exists: GPUs that it has no more go."""
    return {node_annotations.DEVICES: None, card_names.VGPU_REGISTER: None, **annotations}
