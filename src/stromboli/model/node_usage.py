"""Measured load of nodes: plain data, independent of its source."""

from collections.abc import Mapping
from typing import NamedTuple

from stromboli.api import go_scalars

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


def interval(metrics: Mapping[str, str]) -> float:
    """Seconds between measurements, by the `metrics` section of a policy; a newer pod may not show in them."""
    seconds = go_scalars.duration(metrics.get("interval", ""))
    return seconds if seconds is not None and seconds > 0 else INTERVAL
