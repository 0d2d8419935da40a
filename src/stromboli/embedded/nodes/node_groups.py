"""Node groups as users write them: `20`, `20x32cpu,256Gi,8gpu`, several such groups, or a file of Node manifests."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stromboli.api import names
from stromboli.api.errors import Unreadable
from stromboli.api.manifests.yaml_reader import documents
from stromboli.api.resources.quantity import QuantityError, whole
from stromboli.embedded.nodes import node_annotations
from stromboli.embedded.nodes.node_devices import (
    DEFAULT_MEMORY,
    DEFAULT_MODEL,
    BadDevices,
    Gpus,
    add_gpus,
    checked_gpus,
)
from stromboli.embedded.nodes.node_identity import kubelet_labels
from stromboli.embedded.nodes.node_types import Content

MAX_NODES = 10_000
UNLESS_GIVEN = {names.PODS: "110", names.EPHEMERAL_STORAGE: "100Gi"}
"""What every kubelet reports, and users seldom say."""
MEMORY_PER_CPU = 4
"""GiB, where no memory is given."""
DEFAULT_SIZE = "8cpu,32Gi"
"""Of nodes of which only the number is given."""
MAX_FILE = 32 * 1024 * 1024
_GROUP = re.compile(r"(?:([a-z0-9](?:[-a-z0-9]{0,40}[a-z0-9])?)=)?(?:([0-9]{1,9})x)?(.+)")
_AMOUNT = re.compile(r"([0-9]+(?:\.[0-9]+)?)([A-Za-z/.\-]*)")
_MEMORY = re.compile(r"[KMGTPE]i?")
_BYTES = re.compile(r"[KMGTPE]i?(?:b|bytes?)|[kmgtpe]i?", re.IGNORECASE)
_RESOURCES = {"cpu": names.CPU, "cpus": names.CPU, "core": names.CPU, "cores": names.CPU}
_RESOURCES |= {"gpu": names.NVIDIA_GPU, "gpus": names.NVIDIA_GPU, "pods": names.PODS}
DRA, VGPU = "dra", "vgpu"
"""Words of a group: GPUs as devices of a ResourceSlice, or as cards that pods share."""
_WORDS = (node_annotations.REAL, node_annotations.SIMULATED, DRA, VGPU)
_GPU_SETTINGS = ("gpu-memory=", "gpu-model=")
_GPUS = "for example 4x32cpu,8gpu,dra or 4x32cpu,8gpu,vgpu,gpu-memory=40Gi"
_EXAMPLE = "for example 20x32cpu,256Gi,8gpu or big=2x64cpu,1Ti or 4x2cpu,4Gi,real"


class BadNodes(ValueError):
    """A node group that cannot be read; says which part, and what would be right."""


@dataclass(frozen=True, slots=True)
class NodeGroup:
    """A number of equal nodes."""

    name: str
    count: int
    capacity: dict[str, str]
    real: bool = False
    gpus: Gpus | None = None
    """GPUs that are not a resource of the node: devices for DRA, or shared cards."""
    shared: bool = False


def parse_group(text: str) -> NodeGroup:
    """`[NAME=]COUNT` or `[NAME=][COUNTx]AMOUNT,...`, with `real` among the amounts if pods are to be processes.

    With `dra` among them, GPUs are devices of a ResourceSlice, with `vgpu` cards that pods share; `gpu-memory=80Gi`
    and `gpu-model=H100` say what they are like.
    """
    match = _GROUP.fullmatch(text.strip())
    if match is None:
        raise BadNodes(f"nodes {text[:80]!r}: {_EXAMPLE}")
    number, size = match[2], match[3]
    if number is None and size.isdecimal() and len(size) < 10:
        number, size = size, DEFAULT_SIZE
    count = int(number or 1)
    if not 1 <= count <= MAX_NODES:
        raise BadNodes(f"nodes {text[:80]!r}: {count} nodes; at least 1 and at most {MAX_NODES}")
    parts = [part.strip() for part in size.split(",")]
    settings = dict(part.split("=", 1) for part in parts if part.startswith(_GPU_SETTINGS))
    amounts = [part for part in parts if part not in _WORDS and not part.startswith(_GPU_SETTINGS)]
    capacity = dict(_amount(part, text) for part in amounts)
    if names.CPU not in capacity:
        raise BadNodes(f"nodes {text[:80]!r}: how many CPUs? {_EXAMPLE}")
    capacity.setdefault(names.MEMORY, f"{MEMORY_PER_CPU * max(1, whole(capacity[names.CPU]))}Gi")
    gpus = _gpus(parts, capacity, settings, text)
    return NodeGroup(
        match[1] or "", count, UNLESS_GIVEN | capacity, node_annotations.REAL in parts, gpus, VGPU in parts
    )


def _gpus(parts: list[str], capacity: dict[str, str], settings: dict[str, str], text: str) -> Gpus | None:
    """GPUs that are no resource of the node; they are taken out of its capacity."""
    if DRA not in parts and VGPU not in parts:
        if settings:
            raise BadNodes(
                f"nodes {text[:80]!r}: gpu-memory and gpu-model are of GPUs with {DRA} or {VGPU}; {_GPUS}"
            )
        return None
    if DRA in parts and VGPU in parts:
        raise BadNodes(f"nodes {text[:80]!r}: GPUs are either {DRA} or {VGPU}; {_GPUS}")
    try:
        return checked_gpus(
            capacity.pop(names.NVIDIA_GPU, ""),
            settings.get("gpu-memory", DEFAULT_MEMORY),
            settings.get("gpu-model", DEFAULT_MODEL),
        )
    except BadDevices as error:
        raise BadNodes(f"nodes {text[:80]!r}: {error}; {_GPUS}") from None


def _amount(part: str, text: str) -> tuple[str, str]:
    """A resource and how much there is of it."""
    match = _AMOUNT.fullmatch(part)
    if match is None:
        raise BadNodes(f"nodes {text[:80]!r}: {_no_amount(part, text)}; {_EXAMPLE}")
    number, unit = match[1], match[2]
    if _MEMORY.fullmatch(unit):
        resource, amount = names.MEMORY, part
    else:
        resource, amount = _RESOURCES.get(unit.lower(), unit), number
    if resource not in _RESOURCES.values() and resource != names.MEMORY and "/" not in resource:
        raise BadNodes(f"nodes {text[:80]!r}: {_no_resource(number[:20], unit[:40])}; {_EXAMPLE}")
    try:
        whole(amount)
    except QuantityError as error:
        raise BadNodes(f"nodes {text[:80]!r}: {error}") from None
    return resource, amount


def _no_amount(part: str, text: str) -> str:
    if part.lower() in _RESOURCES:
        return f"{part!r}: how many? 8{part.lower()} are eight"
    name, sign, _ = part.partition("=")
    if sign and text.strip().startswith(part):
        return f"{name[:40]!r} is no name of nodes: at most 42 small letters, digits and -"
    return f"{part[:40]!r} is no amount"


def _no_resource(number: str, unit: str) -> str:
    """What is wrong with an amount of something that nodes do not have, and what was probably meant."""
    if not unit:
        kinds = f"{number}cpu, {number}Gi or {number}gpu"
        return f"{number!r}: {number} of what? {kinds}; nodes are counted as in {number}x8cpu"
    if unit == "x":
        return (
            f"{number} nodes of which size? {number}x{DEFAULT_SIZE}, or {number} alone for nodes of that size"
        )
    if _BYTES.fullmatch(unit):
        return f"'{number}{unit}': no resource {unit!r}; memory is {number}{unit[0].upper()}i"
    known = "cpu, gpu, pods, memory as in 32Gi, or a name such as example.com/fpga"
    return f"'{number}{unit}': no resource {unit!r}, but {known}"


def node_manifests(groups: list[str], real: bool = False) -> list[Content]:
    """The nodes of all groups, `n1`, `n2`, ... or `NAME-1`, ...; a group may be the path of a file of manifests."""
    manifests: list[Content] = []
    counts: dict[str, int] = {}
    for text in groups:
        if os.sep in text or text.endswith((".yaml", ".yml", ".json")):
            manifests += _from_file(Path(text))
            continue
        group = parse_group(text)
        for _ in range(group.count):
            number = counts[group.name] = counts.get(group.name, 0) + 1
            name = f"{group.name}-{number}" if group.name else f"n{number}"
            manifest = node_manifest(name, group.capacity, group.real or real)
            if group.gpus is not None:
                add_gpus(manifest, group.gpus, group.shared)
            manifests.append(manifest)
    if len(manifests) > MAX_NODES:
        raise BadNodes(f"{len(manifests)} nodes; at most {MAX_NODES}")
    if len({node["metadata"]["name"] for node in manifests}) < len(manifests):
        raise BadNodes("two nodes of one name; give groups names of their own: a=4x8cpu b=2x64cpu")
    return manifests


def node_manifest(name: str, capacity: dict[str, str], real: bool = False) -> Content:
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": _labels(name, real)},
        "status": {"capacity": dict(capacity), "allocatable": dict(capacity)},
    }


def _labels(name: str, real: bool) -> dict[str, str]:
    kind = node_annotations.REAL if real else node_annotations.SIMULATED
    return {**kubelet_labels(name), node_annotations.NODE: kind}


def _from_file(path: Path) -> list[Content]:
    """Node manifests, completed with our labels and defaults."""
    try:
        if path.stat().st_size > MAX_FILE:
            raise BadNodes(f"{path}: larger than {MAX_FILE} bytes")
        items = [item for document in documents(path.read_text()) for item in _items(document)]
    except OSError as error:
        raise BadNodes(f"{path}: cannot be read: {error.strerror or error}") from None
    except UnicodeDecodeError as error:
        raise BadNodes(f"{path}: cannot be read: {error}") from None
    except Unreadable as error:
        raise BadNodes(f"{path}: {error}") from None
    nodes = [item for item in items if isinstance(item, dict) and item.get("kind") == "Node"]
    if not nodes:
        raise BadNodes(f"{path}: no objects of kind Node in it")
    return [_completed(path, node) for node in nodes]


def _items(document: Any) -> list[Any]:
    if isinstance(document, dict) and str(document.get("kind", "")).endswith("List"):
        return list(document.get("items") or ())
    return [document]


def _completed(path: Path, node: Content) -> Content:
    meta, status = _mapping(node.get("metadata")), _mapping(node.get("status"))
    name = meta.get("name")
    if not isinstance(name, str) or not name:
        raise BadNodes(f"{path}: a Node without metadata.name")
    capacity = _mapping(status.get("capacity")) or _mapping(status.get("allocatable"))
    if not capacity:
        raise BadNodes(f"{path}: node {name}: status.capacity is missing")
    labels = _mapping(meta.get("labels"))
    sizes = UNLESS_GIVEN | {key: str(value) for key, value in capacity.items()}
    usable = {key: str(value) for key, value in _mapping(status.get("allocatable")).items()}
    spec = _mapping(node.get("spec"))
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "labels": {**_labels(name, labels.get(node_annotations.NODE) == node_annotations.REAL), **labels},
            "annotations": _mapping(meta.get("annotations")),
        },
        "spec": {key: spec[key] for key in ("taints", "unschedulable") if key in spec},
        "status": {"capacity": sizes, "allocatable": {**sizes, **usable}},
    }


def _mapping(value: Any) -> Content:
    return dict(value) if isinstance(value, dict) else {}
