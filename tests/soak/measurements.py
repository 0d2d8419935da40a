"""What is measured once a second, and the report of it."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Sequence
from contextlib import suppress

from tests.soak.cluster_process import ClusterProcess
from tests.soak.limits import MIB


class Measurements:
    """The largest of each so far; `now` is the last."""

    def __init__(self, cluster: ClusterProcess) -> None:
        self._cluster = cluster
        self.now = dict[str, float]()
        self.largest = dict[str, float]()
        self.begin = time.monotonic()

    async def run(self, up: asyncio.Event) -> None:
        while True:
            await up.wait()
            with suppress(FileNotFoundError, ProcessLookupError, ValueError):  # killed meanwhile
                self._sample()
            await asyncio.sleep(1)

    def _sample(self) -> None:
        cluster = self._cluster
        self.now = {
            "memory": cluster.memory(),
            "disk": cluster.disk(),
            "descriptors": cluster.descriptors(),
            "processor": cluster.processor_seconds(),
        }
        for name, value in self.now.items():
            self.largest[name] = max(self.largest.get(name, 0), value)

    def line(self) -> str:
        shown = {
            name: value / MIB if name in ("memory", "disk") else value for name, value in self.now.items()
        }
        return ", ".join(f"{name} {value:.0f}" for name, value in shown.items())


def percentile(values: Sequence[float], part: float) -> float:
    """The value that this part of all values does not exceed; for ever if there are none."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, math.ceil(part * len(ordered)) - 1)] if ordered else math.inf
