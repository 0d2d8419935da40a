"""The resources of a container as settings of its cgroup (version 2). A pure function."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from stromboli.api import names
from stromboli.api.resources.quantity import QuantityError, milli, whole
from stromboli.embedded.nodes.node_types import Content

PERIOD = 100_000
"""Microseconds for which a quota of CPU time is."""
LEAST_QUOTA = 1000
"""Microseconds; the kernel takes no less."""
_GREATEST_QUOTA = 10**13
"""Microseconds; the kernel takes little more, and no machine has as many CPUs."""
MAX_PIDS = 16384
"""Processes and threads of a container."""


def cgroup_settings(container: Content) -> dict[str, str]:
    """Files of a cgroup and their content, as a kubelet would have them set."""
    resources = container.get("resources") or {}
    limits, requests = resources.get("limits") or {}, resources.get("requests") or {}
    settings = {"pids.max": str(MAX_PIDS), "memory.oom.group": "1"}
    cpu, memory = _amount(milli, limits.get(names.CPU)), _amount(whole, limits.get(names.MEMORY))
    if cpu:
        quota = min(_GREATEST_QUOTA, max(LEAST_QUOTA, cpu * PERIOD // 1000))
        settings["cpu.max"] = f"{quota} {PERIOD}"
    if memory:
        settings |= {"memory.max": str(memory), "memory.swap.max": "0"}
    settings["cpu.weight"] = str(_weight(_amount(milli, requests.get(names.CPU)) or cpu))
    return settings


def has_limits(container: Content) -> bool:
    limits = (container.get("resources") or {}).get("limits") or {}
    return bool(limits.get(names.CPU) or limits.get(names.MEMORY))


def _weight(millis: int) -> int:
    """Of the CPU time that several want; 100 is the weight of what runs outside, as much as 2.5 CPUs."""
    shares = min(262_144, max(2, millis * 1024 // 1000))
    return 1 + (shares - 2) * 9999 // 262_142


def _amount(convert: Callable[[str], int], quantity: Any) -> int:
    try:
        return convert(str(quantity)) if quantity else 0
    except QuantityError:
        return 0
