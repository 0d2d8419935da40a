"""A rate-limited work queue as client-go's: each key once, never processed twice at the same time (spec 06 1.3)."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Hashable
from typing import Generic, Protocol, TypeVar

from stromboli.kube.request import Backoff

Key = TypeVar("Key", bound=Hashable)

FIRST_PAUSE, MAX_PAUSE = 0.005, 1000.0
"""Seconds that a key waits after its first failure, and at most unless a queue has another limit."""
QPS, BURST = 10.0, 100
"""The token bucket of all failed keys."""


class Timer(Protocol):
    def cancel(self) -> None: ...


class Clock(Protocol):
    """What sets timers; an event loop is one."""

    def time(self) -> float: ...

    def call_later(self, delay: float, callback: Callable[..., object], *args: object) -> Timer: ...


class WorkQueue(Generic[Key]):
    """Keys that wait for a worker, at most one timer per key, and how often each key has failed."""

    def __init__(self, clock: Clock | None = None, max_pause: float = MAX_PAUSE) -> None:
        self._given_clock = clock
        self._backoff = Backoff(FIRST_PAUSE, max_pause, jitter=lambda: 1.0)
        self._queue: deque[Key] = deque()
        self._dirty: set[Key] = set()
        """Keys to be processed: those in the queue, and those that were added while being processed."""
        self._processing: set[Key] = set()
        self._delayed: dict[Key, tuple[float, Timer]] = {}
        """When keys are to be added, with the timers that do so."""
        self._failures: dict[Key, int] = {}
        self._next_slot = 0.0
        """When the token bucket would have its next token if failures came evenly."""
        self._wake = asyncio.Event()
        self._closed = False

    def __len__(self) -> int:
        """How many keys wait for a worker."""
        return len(self._queue)

    @property
    def idle(self) -> bool:
        """Whether no key waits and none is being processed; timers do not count."""
        return not self._dirty and not self._processing

    @property
    def failing(self) -> int:
        """How many keys failed the last time."""
        return len(self._failures)

    @property
    def processing(self) -> int:
        """How many keys workers have."""
        return len(self._processing)

    def add(self, key: Key) -> None:
        """Process a key; one that is being processed is processed again afterwards."""
        if key in self._dirty:
            return
        self._dirty.add(key)
        if key not in self._processing:
            self._queue.append(key)
            self._wake.set()

    def add_after(self, key: Key, seconds: float) -> None:
        """Add a key after a while; of several delays the one that ends first counts."""
        if seconds <= 0:
            self.add(key)
            return
        if self._closed:
            return
        at = self.clock.time() + seconds
        if key in self._delayed:
            earlier, timer = self._delayed[key]
            if earlier <= at:
                return
            timer.cancel()
        self._delayed[key] = at, self.clock.call_later(seconds, self._add_delayed, key)

    def add_rate_limited(self, key: Key, at_least: float = 0.0) -> float:
        """The key failed: add it after a pause, which is returned."""
        failures = self._failures[key] = self._failures.get(key, 0) + 1
        pause = max(self._backoff.pause(failures), self._take_token(), at_least)
        self.add_after(key, pause)
        return pause

    def num_requeues(self, key: Key) -> int:
        """How often the key has failed in a row."""
        return self._failures.get(key, 0)

    def forget(self, key: Key) -> None:
        """The key succeeded: its next failure is the first."""
        self._failures.pop(key, None)

    async def get(self) -> Key:
        """The next key, which is the caller's until `done`."""
        while not self._queue or self._closed:
            self._wake.clear()
            await self._wake.wait()
        key = self._queue.popleft()
        self._dirty.discard(key)
        self._processing.add(key)
        return key

    def done(self, key: Key) -> None:
        """The caller has processed the key, with success or not."""
        self._processing.discard(key)
        if key in self._dirty:
            self._queue.append(key)
            self._wake.set()

    def close(self) -> None:
        """Hand out no more keys, and cancel all timers."""
        self._closed = True
        for _, timer in self._delayed.values():
            timer.cancel()
        self._delayed.clear()

    def _add_delayed(self, key: Key) -> None:
        self._delayed.pop(key, None)
        self.add(key)

    def _take_token(self) -> float:
        """Seconds until the token bucket lets one more failed key through."""
        now, interval = self.clock.time(), 1.0 / QPS
        slot = max(self._next_slot, now)
        self._next_slot = slot + interval
        return max(0.0, slot - now - interval * (BURST - 1))

    @property
    def clock(self) -> Clock:
        """What sets the timers of the queue."""
        if self._given_clock is None:
            self._given_clock = asyncio.get_running_loop()
        return self._given_clock
