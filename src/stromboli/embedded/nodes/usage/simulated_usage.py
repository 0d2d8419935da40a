"""What simulated containers and nodes seem to use: shares of what they request, the same for all who ask in a while."""

from __future__ import annotations

import math
from collections.abc import Collection
from typing import Any, NamedTuple
from zlib import crc32

from stromboli.api import names
from stromboli.api.resources.quantity import QuantityError, milli, whole
from stromboli.embedded.nodes.node_types import Content, NodePod
from stromboli.embedded.nodes.usage.cluster_usage import ContainerUsage, Usage

WINDOW = 15.0
"""Seconds for which an answer stays the same."""
PERIOD = 600.0
"""Seconds in which it moves up and down."""
SWING = 0.05
"""By which share it moves."""
IDLE_CPUS, IDLE_MEMORY = 0.005, 32 << 20
"""Of a container without requests, at most."""


class Level(NamedTuple):
    """Around which a usage moves."""

    name: str
    cpus: float
    memory: float
    phase: float

    def at(self, now: float) -> ContainerUsage:
        step = math.floor(now / WINDOW) * WINDOW
        swing = 1 + SWING * math.sin(2 * math.pi * (step / PERIOD + self.phase))
        return ContainerUsage(self.name, Usage(self.cpus * swing, int(self.memory * swing), WINDOW))


def container_usages(pod: NodePod, names: Collection[str], now: float) -> list[ContainerUsage]:
    """Of the containers of a pod that have these names."""
    containers = (*(pod.spec.init_containers or ()), *pod.spec.containers)
    return [_container_level(pod, each).at(now) for each in containers if each.get("name") in names]


def node_level(name: str, capacity: Content) -> Level:
    """Of a node itself, without its pods."""
    cpu, memory, phase = _chances(name)
    cpus, bytes = _cpus(capacity) or 1.0, _memory(capacity) or IDLE_MEMORY
    return Level(name, cpus * (0.005 + 0.01 * cpu), bytes * (0.01 + 0.01 * memory), phase)


def _container_level(pod: NodePod, container: Content) -> Level:
    name = str(container.get("name", ""))
    cpu, memory, phase = _chances(f"{pod.uid}/{name}")
    resources = container.get("resources")
    resources = resources if isinstance(resources, dict) else {}
    amounts = {**(resources.get("limits") or {}), **(resources.get("requests") or {})}
    cpus, bytes = _cpus(amounts), _memory(amounts)
    return Level(
        name,
        cpus * (0.4 + 0.4 * cpu) if cpus else IDLE_CPUS * (0.2 + 0.8 * cpu),
        bytes * (0.5 + 0.3 * memory) if bytes else IDLE_MEMORY * (0.2 + 0.8 * memory),
        phase,
    )


def _chances(seed: str) -> tuple[float, float, float]:
    """Three numbers from 0 up to 1, always the same for the same seed."""
    number = crc32(seed.encode(errors="replace"))
    return (number & 0x3FF) / 0x400, (number >> 10 & 0x3FF) / 0x400, (number >> 20 & 0x3FF) / 0x400


def _cpus(amounts: Content) -> float:
    return _amount(amounts, names.CPU, milli) / 1000


def _memory(amounts: Content) -> int:
    return _amount(amounts, names.MEMORY, whole)


def _amount(amounts: Content, resource: str, read: Any) -> int:
    """0 if there is none, or it cannot be counted with."""
    try:
        return max(0, int(read(amounts[resource]))) if resource in amounts else 0
    except QuantityError:
        return 0
