"""A work queue by key: items of one key in order, several keys at a time, urgent ones first.

The handler may ask to be called again with an item after a while, or when `resume` is called; meanwhile other keys are
served.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections import deque
from collections.abc import Awaitable, Callable, Hashable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Generic, TypeVar

log = logging.getLogger(__name__)

Item = TypeVar("Item")

PARKED = math.inf
"""The pause of an item that waits for `resume` alone."""


@dataclass(slots=True)
class KeyState(Generic[Item]):
    """The items of one key, each with its urgency; the first is being handled if the key is busy."""

    items: list[tuple[int, Item]] = field(default_factory=list)
    busy: bool = False
    scheduled: int | None = None
    """The urgency with which the key waits for a worker."""
    pause: asyncio.TimerHandle | None = None
    """What ends the pause of the first item, if that has a limit."""
    paused: bool = False
    resumed: bool = False
    """Whether `resume` was called while the item was being handled: it is handled once more."""


class KeyedQueue(Generic[Item]):
    """Items by key, and the workers that handle them."""

    def __init__(
        self,
        handler: Callable[[Item], Awaitable[float | None]],
        workers: int,
        merge: Callable[[Item, Item], Item | None] = lambda earlier, later: None,
    ):
        """`handler` returns None when it is done, or after how many seconds to call it again: `PARKED` if never.

        `merge` may combine two items that wait next to each other.
        """
        self._handler = handler
        self._merge = merge
        self._worker_count = workers
        self._states: dict[Hashable, KeyState[Item]] = {}
        self._ready: dict[int, deque[Hashable]] = {}
        """The keys that wait for a worker, by urgency; those that became more urgent twice."""
        self._resting: deque[asyncio.Future[None]] = deque()
        """What idle workers await; each future is resolved for one key."""
        self._idle = asyncio.Event()
        self._idle.set()
        self._workers: list[asyncio.Task[None]] = []

    def __len__(self) -> int:
        """Keys with items that are not done."""
        return len(self._states)

    def start(self) -> None:
        self._workers = [asyncio.create_task(self._serve()) for _ in range(self._worker_count)]

    def put(self, key: Hashable, item: Item, urgency: int) -> None:
        """Add an item; a key is as urgent (low numbers first) as the most urgent item that waits in it."""
        state = self._states.get(key)
        if state is None:
            state = self._states[key] = KeyState()
            self._idle.clear()
        state.items.append((urgency, item))
        if len(state.items) - state.busy > 1:
            self._merge_at(state, len(state.items) - 2)
        if not state.busy:
            self._schedule(key, state)

    def _merge_at(self, state: KeyState[Item], index: int) -> bool:
        """Merge an item with the next one, if they can be merged; whether they were."""
        (urgency, earlier), (other_urgency, later) = state.items[index], state.items[index + 1]
        merged = self._merge(earlier, later)
        if merged is not None:
            state.items[index] = min(urgency, other_urgency), merged
            del state.items[index + 1]
        return merged is not None

    def resume(self, key: Hashable) -> None:
        """End the pause of a key, or do not let it begin."""
        state = self._states.get(key)
        if state is None or not state.busy:
            return
        if not state.paused:
            state.resumed = True
            return
        if state.pause is not None:
            state.pause.cancel()
        self._resume(key, state)

    async def idle(self) -> None:
        """Wait until all items are done."""
        await self._idle.wait()

    async def stop(self) -> None:
        """Stop the workers; remaining items are dropped."""
        workers, self._workers = self._workers, []
        for worker in workers:
            worker.cancel()
        for worker in workers:
            with suppress(asyncio.CancelledError):
                await worker
        self._states.clear()
        self._ready.clear()
        self._idle.set()

    # -- workers

    def _schedule(self, key: Hashable, state: KeyState[Item]) -> None:
        """Let a worker take the key, or take it earlier."""
        urgency = state.items[0][0] if len(state.items) == 1 else min(urgency for urgency, _ in state.items)
        if state.scheduled is not None and urgency >= state.scheduled:
            return
        state.scheduled = urgency
        if (keys := self._ready.get(urgency)) is None:
            keys = self._ready[urgency] = deque()
        keys.append(key)
        while self._resting:
            resting = self._resting.popleft()
            if not resting.done():
                resting.set_result(None)
                break

    async def _next_key(self) -> Hashable:
        """The most urgent key, and of those the one that has waited longest."""
        while not self._ready:
            resting: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._resting.append(resting)
            await resting
        urgency = min(self._ready)
        keys = self._ready[urgency]
        key = keys.popleft()
        if not keys:
            del self._ready[urgency]
        return key

    async def _serve(self) -> None:
        while True:
            key = await self._next_key()
            state = self._states.get(key)
            if state is None or state.busy:
                continue  # scheduled twice, as it became more urgent
            state.busy, state.scheduled = True, None
            retry_after = await self._handle(state.items[0][1])
            if retry_after is None:
                self._done(key, state)
            else:
                self._pause(key, state, 0.0 if state.resumed else retry_after)
            state.resumed = False

    def _pause(self, key: Hashable, state: KeyState[Item], seconds: float) -> None:
        state.paused = True
        if seconds != PARKED:
            state.pause = asyncio.get_running_loop().call_later(seconds, self._resume, key, state)

    async def _handle(self, item: Item) -> float | None:
        try:
            return await self._handler(item)
        except Exception:
            log.exception("unexpected error while handling %r", item)
            return None

    def _done(self, key: Hashable, state: KeyState[Item]) -> None:
        del state.items[0]
        state.busy = False
        if state.items:
            self._schedule(key, state)
        elif self._states.get(key) is state:
            del self._states[key]
            if not self._states:
                self._idle.set()

    def _resume(self, key: Hashable, state: KeyState[Item]) -> None:
        state.paused, state.pause = False, None
        if self._states.get(key) is state:
            while len(state.items) > 1 and self._merge_at(state, 0):
                pass
            state.busy = False
            self._schedule(key, state)
