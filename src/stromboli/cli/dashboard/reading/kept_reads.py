"""What was read for a viewer a moment ago, so that a page that is rendered again and again asks for little."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple, TypeVar

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

    async def read(
        self, key: Key, seconds: float, stamp: object, reading: Callable[[], Awaitable[Result]]
    ) -> Result:
        """What was read within so many seconds while the stamp was the same; else it is read now."""
        kept = self._kept.get(key)
        if kept is not None and kept.stamp == stamp and kept.until > time.monotonic():
            value: Result = kept.value
            return value
        value = await reading()
        self._kept.pop(key, None)
        if len(self._kept) >= READS_KEPT:
            del self._kept[next(iter(self._kept))]
        self._kept[key] = _Kept(value, stamp, time.monotonic() + seconds)
        return value

    def forget(self, *path: str) -> None:
        """All that was read about an object, for any viewer: it has just been changed."""
        self._kept = {key: kept for key, kept in self._kept.items() if key[1 : len(path) + 1] != path}
