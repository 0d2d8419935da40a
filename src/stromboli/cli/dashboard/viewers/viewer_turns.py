"""How much is done for one viewer at once, whoever else is served."""

from __future__ import annotations

import asyncio
from weakref import WeakValueDictionary


class ViewerTurns:
    """A semaphore for each viewer who has something under way, by his key."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._turns: WeakValueDictionary[str, asyncio.Semaphore] = WeakValueDictionary()

    def __len__(self) -> int:
        return len(self._turns)

    def of(self, viewer: str) -> asyncio.Semaphore:
        """That of a viewer, kept for as long as somebody has it."""
        turn = self._turns.get(viewer)
        if turn is None:
            turn = self._turns[viewer] = asyncio.Semaphore(self._most)
        return turn
