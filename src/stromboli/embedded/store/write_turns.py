"""Who may write in this round of the event loop: few of all who could, so that an event for thousands delays nobody."""

from __future__ import annotations

import asyncio
from collections import deque

MOST_WRITES = 16
"""Writes of watches and long lists in one round of the event loop; further ones wait for the next."""


class WriteTurns:
    """Turns in the order in which they are asked for."""

    def __init__(self) -> None:
        self._taken = 0
        self._waiting: deque[asyncio.Future[None]] = deque()

    async def next(self) -> None:
        """Wait for a turn."""
        if self._taken < MOST_WRITES:
            self._take()
            return
        turn = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        await turn

    def _take(self) -> None:
        if not self._taken:
            asyncio.get_running_loop().call_soon(self._begin_round)
        self._taken += 1

    def _begin_round(self) -> None:
        self._taken = 0
        while self._waiting and self._taken < MOST_WRITES:
            turn = self._waiting.popleft()
            if not turn.done():  # its reader may have left
                self._take()
                turn.set_result(None)
