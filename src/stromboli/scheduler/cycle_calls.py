"""Errands: what somebody else wants done in the cycle's thread, which alone may look at the model."""

from __future__ import annotations

import asyncio
import queue
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, TypeVar

T = TypeVar("T")


class Errands:
    """Handed in on the event loop, run between two cycles."""

    def __init__(self) -> None:
        self._waiting: queue.SimpleQueue[tuple[Callable[[], Any], Future[Any]]] = queue.SimpleQueue()

    async def run(self, errand: Callable[[], T], within: float = 60.0) -> T:
        """Have it done, and get what it gives; `TimeoutError` if no cycle came to its end in time."""
        future: Future[T] = Future()
        self._waiting.put((errand, future))
        return await asyncio.wait_for(asyncio.wrap_future(future), within)

    def attend(self) -> None:
        """Do all that waits; in the cycle's thread."""
        while True:
            try:
                errand, future = self._waiting.get_nowait()
            except queue.Empty:
                return
            if future.set_running_or_notify_cancel():
                try:
                    future.set_result(errand())
                except Exception as error:
                    future.set_exception(error)
