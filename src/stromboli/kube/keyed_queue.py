"""Work in lanes: one lane per object, in order within a lane, so many lanes at a time, urgent ones first.

Whoever does the work may ask to be called again after a while: the lane waits, its place is given to another one.
"""

from __future__ import annotations

import asyncio
import heapq
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Hashable
from contextlib import suppress
from typing import Generic, TypeVar

log = logging.getLogger(__name__)

Item = TypeVar("Item")


class Lane(Generic[Item]):
    """What is still to be done about one object; the first is being done if the lane is busy."""

    __slots__ = ("busy", "todo", "urgency")

    def __init__(self, urgency: int):
        self.todo: deque[Item] = deque()
        self.busy = False
        self.urgency = urgency


class Lanes(Generic[Item]):
    """Lanes by object, and workers that serve them."""

    def __init__(
        self,
        work: Callable[[Item], Awaitable[float | None]],
        width: int,
        merge: Callable[[Item, Item], Item | None] = lambda earlier, later: None,
    ):
        """`work` returns None when it is done, or after how many seconds it wants to be called again.

        `merge` may make one of two that wait next to each other.
        """
        self._work = work
        self._merge = merge
        self._width = width
        self._lanes: dict[Hashable, Lane[Item]] = {}
        self._ready: list[tuple[int, int, Hashable]] = []
        self._serial = 0
        self._wake = asyncio.Event()
        self._idle = asyncio.Event()
        self._idle.set()
        self._workers: list[asyncio.Task[None]] = []

    def __len__(self) -> int:
        """Objects about which something is still to be done."""
        return len(self._lanes)

    def start(self) -> None:
        """Begin to work."""
        self._workers = [asyncio.create_task(self._serve()) for _ in range(self._width)]

    def put(self, key: Hashable, item: Item, urgency: int) -> None:
        """One thing more to do about an object."""
        lane = self._lanes.get(key)
        if lane is None:
            lane = self._lanes[key] = Lane(urgency)
            self._idle.clear()
        waiting = len(lane.todo) - lane.busy
        merged = self._merge(lane.todo[-1], item) if waiting else None
        if merged is not None:
            lane.todo[-1] = merged
            return
        lane.todo.append(item)
        if not lane.busy and (waiting == 0 or urgency < lane.urgency):
            lane.urgency = min(urgency, lane.urgency) if waiting else urgency
            self._call(key, lane)

    async def idle(self) -> None:
        """Wait until nothing is left to be done."""
        await self._idle.wait()

    async def stop(self) -> None:
        """Stop working, whatever is left."""
        workers, self._workers = self._workers, []
        for worker in workers:
            worker.cancel()
        for worker in workers:
            with suppress(asyncio.CancelledError):
                await worker
        self._lanes.clear()
        self._ready.clear()
        self._idle.set()

    # -- serving

    def _call(self, key: Hashable, lane: Lane[Item]) -> None:
        self._serial += 1
        heapq.heappush(self._ready, (lane.urgency, self._serial, key))
        self._wake.set()

    async def _serve(self) -> None:
        while True:
            while not self._ready:
                self._wake.clear()
                await self._wake.wait()
            key = heapq.heappop(self._ready)[2]
            lane = self._lanes.get(key)
            if lane is None or lane.busy or not lane.todo:
                continue  # called twice, as something urgent came in
            lane.busy = True
            again = await self._once(lane.todo[0])
            if again is None:
                self._done(key, lane)
            else:
                asyncio.get_running_loop().call_later(again, self._resume, key, lane)

    async def _once(self, item: Item) -> float | None:
        try:
            return await self._work(item)
        except Exception:
            log.exception("a write failed in a way that nobody thought of: %r", item)
            return None

    def _done(self, key: Hashable, lane: Lane[Item]) -> None:
        lane.todo.popleft()
        lane.busy = False
        if lane.todo:
            self._call(key, lane)
        elif self._lanes.get(key) is lane:
            del self._lanes[key]
            if not self._lanes:
                self._idle.set()

    def _resume(self, key: Hashable, lane: Lane[Item]) -> None:
        if self._lanes.get(key) is lane:
            while len(lane.todo) > 1 and (merged := self._merge(lane.todo[0], lane.todo[1])) is not None:
                lane.todo.popleft()
                lane.todo[0] = merged
            lane.busy = False
            self._call(key, lane)
