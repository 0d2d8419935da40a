"""The only way between the event loop, which owns the network, and the cycle's thread, which owns the model.

Neither thread waits for the other. To the cycle's thread go the changes of watched objects, each object once as last
seen, and calls, such as failed writes, that it runs between two cycles; to the event loop go calls, such as orders for
the writer. Metrics need no seam: the metrics library has locks of its own.

All of it is bounded: reflectors wait while too many changes are held, and there are no more calls than writes that the
cycle itself ordered and results that are awaited.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from queue import Empty, SimpleQueue
from threading import Event
from typing import TypeVar

from stromboli.scheduler.mirror.change_buffer import ChangeBuffer

Result = TypeVar("Result")
TIMEOUT = 60.0
"""Seconds within which the cycle's thread has to come to a call whose result is awaited."""


class Unavailable(Exception):
    """Why something cannot be computed or shown now."""


class ThreadSeam:
    """Made for the event loop on which `to_event_loop` calls."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop | None = None, changes: ChangeBuffer | None = None
    ) -> None:
        self.changes = changes if changes is not None else ChangeBuffer()
        self._loop = loop
        self._calls: SimpleQueue[Callable[[], None]] = SimpleQueue()
        self._released = Event()
        """Set when we lead, or when we never will."""
        self._stopped = Event()

    # -- from the event loop

    def to_cycle(self, call: Callable[[], None]) -> None:
        """Let the cycle's thread make this call soon, between two cycles."""
        self._calls.put(call)
        self.changes.arrived.set()

    async def result_from_cycle(self, call: Callable[[], Result]) -> Result:
        """What a call in the cycle's thread returns; `Unavailable` if no cycle begins in time."""
        future: Future[Result] = Future()

        def run() -> None:
            if future.set_running_or_notify_cancel():
                try:
                    future.set_result(call())
                except Exception as error:
                    future.set_exception(error)

        self.to_cycle(run)
        try:
            return await asyncio.wait_for(asyncio.wrap_future(future), TIMEOUT)
        except TimeoutError:
            raise Unavailable(f"no cycle began within {TIMEOUT:g} seconds") from None

    def lead(self) -> None:
        """End `wait_to_lead`: we are the leader."""
        self._released.set()

    def stop(self) -> None:
        """End all waiting: no further cycle is wanted. From any thread."""
        self._stopped.set()  # first, else we would seem to lead for a moment
        self._released.set()
        self.changes.arrived.set()

    @property
    def leads(self) -> bool:
        return self._released.is_set() and not self._stopped.is_set()

    # -- from the cycle's thread

    def to_event_loop(self, call: Callable[[], object]) -> None:
        """Let the event loop make this call soon; nothing happens if it has ended."""
        assert self._loop is not None
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(call)

    def run_calls(self) -> None:
        """Make all calls that wait."""
        while True:
            try:
                call = self._calls.get_nowait()
            except Empty:
                return
            call()

    def wait_to_lead(self, seconds: float) -> bool:
        """Wait so long, or until we lead or are stopped; whether that is so."""
        return self._released.wait(seconds)

    def wait_for_changes(self, seconds: float) -> bool:
        """Wait so long, or until there are changes or calls, or we are stopped; whether any of that is so.

        It is so until `clear`, which is to be called before changes and calls are taken.
        """
        return self.changes.arrived.wait(seconds)

    def clear(self) -> None:
        """Wait from now on for what comes from now on."""
        self.changes.arrived.clear()

    def wait_to_stop(self, seconds: float) -> bool:
        """Wait so long, or until we are stopped; whether that is so."""
        return self._stopped.wait(seconds)
