"""What is to be done next: each key once, never twice at the same time, later after failures (spec 06 1.3)."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Generic, NamedTuple, Protocol, TypeVar

Key = TypeVar("Key", bound=Hashable)


class Alarm(Protocol):
    def cancel(self) -> None: ...


class Timers(Protocol):
    """A clock that can ring; an event loop is one."""

    def time(self) -> float: ...

    def call_later(self, delay: float, callback: Callable[..., object], *args: object) -> Alarm: ...


@dataclass(frozen=True, slots=True)
class Pace:
    """How long failures wait: each key twice as long every time, and all together not too many a second."""

    first: float = 0.005
    longest: float = 1000.0
    qps: float = 10.0
    burst: int = 100

    def pause(self, failures: int) -> float:
        """Seconds after so many failures in a row, one being the first."""
        return min(self.longest, self.first * 2.0 ** min(failures - 1, 60))


class Due(NamedTuple):
    """When a key comes back by itself."""

    at: float
    alarm: Alarm


class WorkQueue(Generic[Key]):
    """Keys that wait, one timer per key at most, and how often each has failed."""

    def __init__(self, pace: Pace = Pace(), timers: Timers | None = None) -> None:  # noqa: B008 - frozen
        self._pace = pace
        self._timers = timers
        self._waiting: deque[Key] = deque()
        self._wanted: set[Key] = set()
        """Keys about which something is to be done: waiting, or again once they are not busy any more."""
        self._busy: set[Key] = set()
        self._later: dict[Key, Due] = {}
        self._failures: dict[Key, int] = {}
        self._even = 0.0
        """When the next failure would be on time if they came evenly."""
        self._wake = asyncio.Event()
        self._closed = False

    def __len__(self) -> int:
        """How many wait for a worker."""
        return len(self._waiting)

    @property
    def quiet(self) -> bool:
        """Whether nothing waits and nothing is being done; timers do not count."""
        return not self._wanted and not self._busy

    @property
    def failing(self) -> int:
        """How many keys failed the last time, and are to be tried again."""
        return len(self._failures)

    @property
    def resting(self) -> bool:
        """Whether nothing is being done, whatever waits."""
        return not self._busy

    def add(self, key: Key) -> None:
        """Something is to be done; said twice it is done once, said meanwhile it is done once more."""
        if key in self._wanted:
            return
        self._wanted.add(key)
        if key not in self._busy:
            self._waiting.append(key)
            self._wake.set()

    def add_after(self, key: Key, seconds: float) -> None:
        """The same after a while; of several such times the first counts."""
        if seconds <= 0:
            self.add(key)
            return
        if self._closed:
            return
        at = self._clock.time() + seconds
        before = self._later.get(key)
        if before is not None:
            if before.at <= at:
                return
            before.alarm.cancel()
        self._later[key] = Due(at, self._clock.call_later(seconds, self._rings, key))

    def retry(self, key: Key) -> float:
        """It failed: again after a pause, which is returned."""
        failures = self._failures[key] = self._failures.get(key, 0) + 1
        pause = max(self._pace.pause(failures), self._turn())
        self.add_after(key, pause)
        return pause

    def failures(self, key: Key) -> int:
        """How often it has failed in a row."""
        return self._failures.get(key, 0)

    def forget(self, key: Key) -> None:
        """It went well: the next failure is the first."""
        self._failures.pop(key, None)

    async def get(self) -> Key:
        """The next key, which is the caller's until `done`."""
        while not self._waiting or self._closed:
            self._wake.clear()
            await self._wake.wait()
        key = self._waiting.popleft()
        self._wanted.discard(key)
        self._busy.add(key)
        return key

    def done(self, key: Key) -> None:
        """The caller has finished with it, well or not."""
        self._busy.discard(key)
        if key in self._wanted:
            self._waiting.append(key)
            self._wake.set()

    def close(self) -> None:
        """Give out nothing more, and let no timer ring."""
        self._closed = True
        for due in self._later.values():
            due.alarm.cancel()
        self._later.clear()

    def _rings(self, key: Key) -> None:
        self._later.pop(key, None)
        self.add(key)

    def _turn(self) -> float:
        """Seconds until one more failure fits into what all keys may fail together."""
        if self._pace.qps <= 0:
            return 0.0
        now, interval = self._clock.time(), 1.0 / self._pace.qps
        due = max(self._even, now)
        self._even = due + interval
        return max(0.0, due - now - interval * max(0, self._pace.burst - 1))

    @property
    def _clock(self) -> Timers:
        if self._timers is None:
            self._timers = asyncio.get_running_loop()
        return self._timers
