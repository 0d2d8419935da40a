"""Orders on their way to the writer, some at a time: while the last of ten thousand wait, the first are sent."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterable

from stromboli.scheduler.writes.write_orders import WriteOrder

PORTION = 200
"""Orders that are queued in one turn of the event loop, some milliseconds of it."""


class OrderPortions:
    """On the event loop; orders stay in their order."""

    def __init__(self, submit: Callable[[Iterable[WriteOrder]], None]) -> None:
        self._submit = submit
        self._waiting: deque[WriteOrder] = deque()
        self._due = False
        """Whether a portion is handed over in the next turn."""

    def put(self, orders: Iterable[WriteOrder]) -> None:
        """Hand a portion over now if nothing waits, and the rest turn by turn."""
        self._waiting.extend(orders)
        if not self._due:
            self._hand_over()

    def flush(self) -> None:
        """Hand all over now."""
        self._submit(self._waiting)
        self._waiting.clear()

    def _hand_over(self) -> None:
        waiting = self._waiting
        self._submit([waiting.popleft() for _ in range(min(PORTION, len(waiting)))])
        self._due = bool(waiting)
        if self._due:
            asyncio.get_running_loop().call_soon(self._hand_over)
