"""Measures what containers use, when somebody asks: CPUs are the difference between two readings."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import NamedTuple

from stromboli.embedded.nodes.usage.cluster_usage import Usage
from stromboli.embedded.nodes.usage.process_usage import Reading

WINDOW = 1.0
"""Seconds between two readings, at least; whoever asks in between gets the same answer."""
STALE = 60.0
"""Seconds after which a reading says nothing of now: two are then made, one window apart."""

Read = Callable[[], Awaitable[Mapping[str, Reading]]]
"""Readings of all containers that run, by a key that is new for each run of a container."""


class _Sample(NamedTuple):
    time: float
    readings: Mapping[str, Reading]


class UsageMeter:
    """Usage by run of a container."""

    def __init__(self, read: Read, clock: Callable[[], float] = time.monotonic, window: float = WINDOW):
        self._read = read
        self._clock = clock
        self._window = window
        self._last: _Sample | None = None
        self._usages: dict[str, Usage] = {}
        self._lock = asyncio.Lock()

    async def measure(self) -> None:
        """Bring usages up to date; all who ask at once wait for the same readings."""
        async with self._lock:
            age = self._clock() - self._last.time if self._last is not None else STALE
            if age < self._window:
                return
            if self._last is None or age >= STALE:
                self._last = await self._sample()
                await asyncio.sleep(self._window)
            before, self._last = self._last, await self._sample()
            self._usages = _differences(before, self._last)

    def usage(self, key: str) -> Usage | None:
        """None of what has not run for a window."""
        return self._usages.get(key)

    async def _sample(self) -> _Sample:
        readings = await self._read()
        return _Sample(self._clock(), readings)


def _differences(before: _Sample, after: _Sample) -> dict[str, Usage]:
    window = max(after.time - before.time, 1e-3)
    return {
        key: Usage(max(0.0, reading.cpu_seconds - earlier.cpu_seconds) / window, reading.memory, window)
        for key, reading in after.readings.items()
        if (earlier := before.readings.get(key)) is not None
    }
