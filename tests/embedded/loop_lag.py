"""How long the event loop is busy without serving anybody else, in tests."""

from __future__ import annotations

import asyncio
import gc
import heapq
import time
from contextlib import suppress
from types import TracebackType

import msgspec

TICK = 0.005
LIMIT = 0.1
"""Seconds that nothing on the event loop may take."""
SLOWNESS = 3
"""How much slower than an ordinary machine one that runs tests may be."""
SAMPLE = 0.010
"""Seconds of CPU that `sample_work` takes on an ordinary machine."""


def sample_work() -> float:
    """Seconds of CPU that this machine takes for something like what the event loop does."""
    begin = time.thread_time()
    for _ in range(100):
        msgspec.json.encode({str(number): [number, {"a": number}] for number in range(200)})
    return time.thread_time() - begin


class LoopLag:
    """Measures the longest time between two turns of the event loop, in seconds of CPU.

    CPU time of the process, and not the time that passes, so that other processes do not count; threads of this one
    do, since they hold the interpreter lock meanwhile. What was there before is left alone by the garbage collector.
    """

    def __init__(self) -> None:
        self.worst = 0.0
        self._own = [0.0, 0.0]

    @property
    def own(self) -> float:
        """The longest without other threads."""
        return self._own[0]

    async def __aenter__(self) -> LoopLag:
        gc.collect()
        gc.freeze()
        self._task = asyncio.create_task(self._measure())
        await asyncio.sleep(0)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await asyncio.sleep(2 * TICK)
        self._task.cancel()
        with suppress(asyncio.CancelledError):
            await self._task
        gc.unfreeze()

    async def _measure(self) -> None:
        while True:
            start, own = time.process_time(), time.thread_time()
            await asyncio.sleep(TICK)
            self.worst = max(self.worst, time.process_time() - start)
            self._own = heapq.nlargest(2, (*self._own, time.thread_time() - own))

    def check(self, subject: str) -> None:
        """The longest must be within the limit."""
        assert self.worst < LIMIT * SLOWNESS, f"{subject}: the loop was busy for {self.worst:.3f} s"

    def check_own(self, subject: str) -> None:
        """The loop's own turns must be within the limit, which grows with the time that this machine takes for work.

        One may be longer: whoever lends the machine takes it away at times, and that counts as CPU time.
        """
        limit = LIMIT * max(1.0, min(sample_work() for _ in range(5)) / SAMPLE)
        assert self._own[1] < limit, f"{subject}: turns took {self._own} s; {limit:.3f} s are allowed"
