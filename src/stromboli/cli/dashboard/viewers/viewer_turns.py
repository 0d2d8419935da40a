"""A limit of concurrent work for each viewer."""

from __future__ import annotations

import asyncio
from weakref import WeakValueDictionary


class ViewerTurns:
    """A semaphore for each viewer with work in progress, by the key of the viewer."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._turns: WeakValueDictionary[str, asyncio.Semaphore] = WeakValueDictionary()

    def __len__(self) -> int:
        return len(self._turns)

    def of(self, viewer: str) -> asyncio.Semaphore:
        """The semaphore of a viewer, kept while it is in use."""
        turn = self._turns.get(viewer)
        if turn is None:
            turn = self._turns[viewer] = asyncio.Semaphore(self._most)
        return turn
