"""This machine as a node: its name, CPUs, memory, disk and GPUs, less what its owner needs."""

from __future__ import annotations

import logging
import os
import platform
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

from stromboli.api import names
from stromboli.api.resources.quantity import QuantityError, whole
from stromboli.embedded.nodes import node_annotations
from stromboli.embedded.nodes.machine.nvidia_smi import Gpu, NvidiaSmiError, find_gpus
from stromboli.embedded.nodes.node_groups import UNLESS_GIVEN, BadNodes, node_manifest
from stromboli.embedded.nodes.node_types import Content

log = logging.getLogger(__name__)

GIBIBYTE = 1024**3
_CGROUP = Path("/sys/fs/cgroup")


def machine_node(folder: Path) -> Content:
    """The node; `folder` is on the disk that pods write to."""
    try:
        gpus = find_gpus()
    except NvidiaSmiError as error:
        log.warning("no GPUs are offered: %s", error)
        gpus = []
    cpu, memory, (disk, free) = cpus(), memory_bytes(), _disk(folder)
    capacity = UNLESS_GIVEN | {
        names.CPU: _cpu_text(cpu),
        names.MEMORY: f"{memory // 1024}Ki",
        names.EPHEMERAL_STORAGE: f"{disk // 1024}Ki",
    }
    node = node_manifest(host_name(), capacity, real=True)
    node["metadata"]["annotations"] = {node_annotations.MACHINE: "true"}
    node["status"]["allocatable"] |= {
        names.MEMORY: f"{(memory - kept_back(memory)) // 1024}Ki",
        names.EPHEMERAL_STORAGE: f"{free * 9 // 10 // 1024}Ki",
    }
    if gpus:
        for amounts in (node["status"]["capacity"], node["status"]["allocatable"]):
            amounts[names.NVIDIA_GPU] = str(len(gpus))
        _label_gpus(node, gpus, len(gpus))
    return node


def machine_nodes(nodes: list[Content], existing: list[Content]) -> list[Content]:
    """The nodes to register where some may exist: a machine keeps the name and the real nodes that it has.

    Data of a release that made other nodes for `up --real`, or of a host that was called otherwise, stay as they are.
    """
    if not any(_is_machine(node) for node in nodes):
        return nodes
    for old in existing:
        if _is_machine(old):
            name = old["metadata"]["name"]
            return [_renamed(node, name) if _is_machine(node) else node for node in nodes]
    has_real = any(_is_real(node) for node in existing)
    return [node for node in nodes if not has_real or not _is_machine(node)]


def _is_machine(node: Content) -> bool:
    return node_annotations.MACHINE in (node["metadata"].get("annotations") or {})


def _is_real(node: Content) -> bool:
    return (node["metadata"].get("labels") or {}).get(node_annotations.NODE) == node_annotations.REAL


def _renamed(node: Content, name: str) -> Content:
    meta = node["metadata"]
    return {**node, "metadata": {**meta, "name": name, "labels": {**meta["labels"], names.HOSTNAME: name}}}


def offer_gpus(nodes: list[Content]) -> None:
    """Check that this machine has the GPUs of its real nodes, and label the nodes; `BadNodes` if it has fewer."""
    counts = [(node, _gpu_count(node)) for node in nodes if _is_real(node)]
    total = sum(count for _, count in counts)
    if not total:
        return
    try:
        gpus = find_gpus()
    except NvidiaSmiError as error:
        raise BadNodes(f"{total} GPUs for real nodes: {error}") from None
    if total > len(gpus):
        raise BadNodes(
            f"{total} GPUs for real nodes: this machine has {len(gpus)} that nvidia-smi lists and pods may use; "
            "ask for as many at most, or leave `real` out to simulate them"
        )
    for node, count in counts:
        if count:
            _label_gpus(node, gpus, count)


def _gpu_count(node: Content) -> int:
    try:
        return whole(node["status"]["capacity"].get(names.NVIDIA_GPU) or "0")
    except QuantityError:
        return 0


def _label_gpus(node: Content, gpus: list[Gpu], count: int) -> None:
    labels = {
        node_annotations.GPU_PRESENT: "true",
        node_annotations.GPU_COUNT: str(count),
        node_annotations.GPU_MEMORY: str(min(gpu.memory for gpu in gpus)),
    }
    models = sorted({gpu.name for gpu in gpus})
    if len(models) == 1:
        labels[node_annotations.GPU_PRODUCT] = product(models[0])
    else:
        log.info("GPUs of several models: %s; no label says which", ", ".join(models))
    node["metadata"]["labels"] |= labels


def product(model: str) -> str:
    """`NVIDIA A100-SXM4-80GB` as a label: `NVIDIA-A100-SXM4-80GB`."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", model.strip())[:63].strip("-._")


def host_name() -> str:
    """The host's name as a node may have it."""
    name = re.sub(r"[^a-z0-9.-]+", "-", platform.node().lower())[:63]
    return ".".join(part.strip("-") for part in name.split(".") if part.strip("-")) or "localhost"


def kept_back(memory: int) -> int:
    """Memory for everything else that runs here: a tenth, between 512 MiB and 4 GiB, but a quarter at most."""
    return min(memory // 4, max(GIBIBYTE // 2, min(memory // 10, 4 * GIBIBYTE)))


def cpus() -> float:
    """The CPUs that we may use: those of our affinity, less if our cgroup has a quota."""
    if hasattr(os, "sched_getaffinity"):
        available = float(len(os.sched_getaffinity(0)))
    else:
        available = float(os.cpu_count() or 1)
    return max(0.1, min([available, *_quotas()]))


def memory_bytes() -> int:
    """The memory of the machine, less if our cgroup has a limit."""
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    limits = [
        _number(text)
        for folder in _cgroups("memory")
        for text in _texts(folder, "memory.max", "memory.limit_in_bytes")
    ]
    return min([total, *(limit for limit in limits if limit > 0)])


def _cpu_text(cpu: float) -> str:
    return str(int(cpu)) if cpu == int(cpu) else f"{int(cpu * 1000)}m"


def _disk(folder: Path) -> tuple[int, int]:
    """Bytes of the disk, and those that are free for us."""
    existing = next(path for path in (folder, *folder.parents) if path.exists())
    usage = shutil.disk_usage(existing)
    return usage.total, usage.free


def _quotas() -> Iterator[float]:
    """CPUs by the quotas of our cgroup and those above it."""
    for folder in _cgroups("cpu"):
        for text in _texts(folder, "cpu.max"):
            quota, _, period = text.partition(" ")
            if _number(quota) > 0 and _number(period) > 0:
                yield _number(quota) / _number(period)
        for text in _texts(folder, "cpu.cfs_quota_us"):
            period = next(_texts(folder, "cpu.cfs_period_us"), "")
            if _number(text) > 0 and _number(period) > 0:
                yield _number(text) / _number(period)


def _cgroups(controller: str) -> Iterator[Path]:
    """The folders of our cgroup and of those above it, of version 2 or, for the controller, of version 1."""
    try:
        lines = Path("/proc/self/cgroup").read_text().splitlines()
    except OSError:
        return
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if controllers == "" or controller in controllers.split(","):
            root = _CGROUP / controllers if controllers else _CGROUP
            own = root / path.lstrip("/")
            yield from (folder for folder in (own, *own.parents) if folder.is_relative_to(root))


def _texts(folder: Path, *files: str) -> Iterator[str]:
    for file in files:
        try:
            yield (folder / file).read_text().strip()
        except OSError:
            continue


def _number(text: str) -> int:
    return int(text) if text.isdecimal() else 0
