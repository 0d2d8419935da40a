"""When what failed is tried again: plugins, jobs over which a cycle was lost, objects that could not be added."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Generic, NamedTuple, TypeVar

FIRST_PAUSE = 10.0
"""Seconds until what failed is tried again, for the first time."""
MAX_PAUSE = 600.0
"""Seconds that such a pause lasts at most."""
Key = TypeVar("Key", bound=Hashable)


class Pause(NamedTuple):
    """How long something pauses, and until when."""

    seconds: float
    until: float


class Pauses(Generic[Key]):
    """Pauses that double each time, unless all was well for as long as the last one."""

    def __init__(self) -> None:
        self._pauses: dict[Key, Pause] = {}

    def begin(self, key: Key, now: float) -> Pause:
        last = self._pauses.get(key)
        again = last is not None and now < last.until + last.seconds
        seconds = min(2 * last.seconds, MAX_PAUSE) if last is not None and again else FIRST_PAUSE
        pause = self._pauses[key] = Pause(seconds, now + seconds)
        return pause

    def __bool__(self) -> bool:
        return bool(self._pauses)

    def is_on(self, key: Key, now: float) -> bool:
        """Whether a pause is not over yet."""
        return key in self._pauses and now < self._pauses[key].until

    def length(self, key: Key, now: float) -> float:
        """The seconds of the pause that is on, from its start to its end; 0 if none is."""
        return self._pauses[key].seconds if self.is_on(key, now) else 0.0

    def forget(self, now: float) -> None:
        """Forget all that was well for as long as it had paused."""
        self._pauses = {key: last for key, last in self._pauses.items() if now < last.until + last.seconds}
