"""Long work on the event loop, cut into slices between which everybody else is served."""

from __future__ import annotations

import asyncio
import time

SLICE = 0.01
"""Seconds of work between two pauses."""
LARGE = 64 * 1024
"""Bytes of a body from which on a request pauses between its steps."""


class TimeSlices:
    """For loops over many objects: `if slices.due: await slices.pause()`."""

    def __init__(self) -> None:
        self._end = time.monotonic() + SLICE

    @property
    def due(self) -> bool:
        return time.monotonic() >= self._end

    async def pause(self) -> None:
        await asyncio.sleep(0)
        self._end = time.monotonic() + SLICE


async def pause_if_large(size: int) -> None:
    """Between two steps of a request with a body of this many bytes."""
    if size >= LARGE:
        await asyncio.sleep(0)
