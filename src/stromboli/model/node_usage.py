"""Measured load of nodes: plain data, independent of its source."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from stromboli.api import go_scalars, names
from stromboli.api.resources.resource_lists import amounts

if TYPE_CHECKING:
    from stromboli.model.node_columns import Node

FRESH = 300.0
"""Seconds after which a measurement is too old to be used."""
INTERVAL = 30.0
"""Default seconds between measurements."""


class NodeUsage(NamedTuple):
    """What a node used on average over the last ten minutes, in percent of its capacity, and when it was measured."""

    cpu: float
    """Percent of the node's CPUs."""
    memory: float
    """Percent of the node's memory."""
    at: float
    """When it was measured, in seconds since 1970."""

    def fresh(self, now: float) -> bool:
        """Whether it is recent enough to use: measured in the last five minutes."""
        return now - self.at <= FRESH


def measured_capacity(node: Node) -> dict[str, int]:
    """The milli-CPU and bytes that percentages of a node refer to: its `status.capacity`, not what is allocatable."""
    stated = node.object.status.capacity if node.object is not None else {}
    resources = (names.CPU, names.MEMORY)
    known = amounts({name: stated[name] for name in resources if name in stated}, "status.capacity")
    return {name: known.get(name, 0) for name in resources}


def interval(metrics: Mapping[str, str]) -> float:
    """Seconds between measurements, by the `metrics` section of a policy; a newer pod may not show in them."""
    seconds = go_scalars.duration(metrics.get("interval", ""))
    return seconds if seconds is not None and seconds > 0 else INTERVAL
