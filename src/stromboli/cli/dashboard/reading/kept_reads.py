"""What was read for a viewer a moment ago, so that a page that is rendered again and again asks for little."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple, TypeVar

from stromboli.cli.dashboard.viewers.viewer_turns import ViewerTurns

MOST_READS = 6
"""Of all viewers at once; further ones wait for their turn."""
MOST_OWN_READS = 2
"""Of one viewer."""
READS_KEPT = 64
"""The oldest goes for a new one."""
Key = tuple[str, ...]
"""Of the viewer, and of what was read with his rights."""
Result = TypeVar("Result")


class _Kept(NamedTuple):
    value: Any
    stamp: object
    until: float


class KeptReads:
    """What was read, by the key of the viewer and what it is about."""

    def __init__(self) -> None:
        self._kept: dict[Key, _Kept] = {}
        self._reading: dict[Key, tuple[object, asyncio.Task[Any]]] = {}
        """What is being read, with its stamp."""
        self._turns = asyncio.Semaphore(MOST_READS)
        self._own_turns = ViewerTurns(MOST_OWN_READS)

    async def read(
        self, key: Key, seconds: float, stamp: object, reading: Callable[[], Awaitable[Result]]
    ) -> Result:
        """What was read within so many seconds while the stamp was the same; else it is read now, once for all.

        A reading must not ask for another one, as both would wait for a turn.
        """
        kept = self._kept.get(key)
        if kept is not None and kept.stamp == stamp and kept.until > time.monotonic():
            value: Result = kept.value
            return value
        stamped, task = self._reading.get(key, (None, None))
        if task is None or stamped != stamp:
            task = asyncio.create_task(self._read(key, seconds, stamp, reading))
            self._reading[key] = stamp, task
            task.add_done_callback(lambda done: self._end(key, done))
        result: Result = await asyncio.shield(task)
        return result

    def _end(self, key: Key, task: asyncio.Task[Any]) -> None:
        if self._reading.get(key, (None, None))[1] is task:
            del self._reading[key]
        if not task.cancelled():
            task.exception()  # whoever waited for it was told

    async def _read(
        self, key: Key, seconds: float, stamp: object, reading: Callable[[], Awaitable[Result]]
    ) -> Result:
        async with self._own_turns.of(key[0]), self._turns:
            value = await reading()
        self._kept.pop(key, None)
        if len(self._kept) >= READS_KEPT:
            del self._kept[next(iter(self._kept))]
        self._kept[key] = _Kept(value, stamp, time.monotonic() + seconds)
        return value

    def forget(self, *path: str) -> None:
        """All that was read about an object, for any viewer: it has just been changed."""
        self._kept = {key: kept for key, kept in self._kept.items() if key[1 : len(path) + 1] != path}
        self._reading = {key: task for key, task in self._reading.items() if key[1 : len(path) + 1] != path}

    async def close(self) -> None:
        """Read no more."""
        tasks = [task for _, task in self._reading.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
