"""Pauses after failures: of plugins, jobs that made a cycle fail, objects that could not be added."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Generic, NamedTuple, TypeVar

FIRST_PAUSE = 10.0
"""Seconds of the first pause."""
MAX_PAUSE = 600.0
"""Maximum seconds of a pause."""
Key = TypeVar("Key", bound=Hashable)


class Pause(NamedTuple):
    """How long something pauses, and until when."""

    seconds: float
    until: float


class Pauses(Generic[Key]):
    """Pauses that double each time, unless there was no failure for as long as the last pause."""

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
        """The length of the current pause in seconds; 0 if there is none."""
        return self._pauses[key].seconds if self.is_on(key, now) else 0.0

    def forget(self, now: float) -> None:
        """Forget everything that had no failure for as long as its last pause."""
        self._pauses = {key: last for key, last in self._pauses.items() if now < last.until + last.seconds}
