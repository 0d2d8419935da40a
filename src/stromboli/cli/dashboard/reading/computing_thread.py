"""Long computations beside the event loop: one at a time, and the end of the process waits for none."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

Result = TypeVar("Result")


class ComputingThread:
    """A daemon thread for each computation: the end of the process does not wait for it."""

    def __init__(self) -> None:
        self._ended: Future[None] | None = None

    async def idle(self) -> None:
        """Wait until the last computation has ended; whoever gave it up could not stop it."""
        if self._ended is not None:
            await asyncio.wrap_future(self._ended)

    async def compute(self, function: Callable[[], Result]) -> Result:
        """Call a function there."""
        result: Future[Result] = Future()
        ended = self._ended = Future()
        for each in (result, ended):
            each.set_running_or_notify_cancel()  # so that nobody who gives up cancels it

        def run() -> None:
            try:
                result.set_result(function())
            except BaseException as error:  # raised where the result is awaited
                result.set_exception(error)
            finally:
                ended.set_result(None)

        threading.Thread(target=run, name="explanation", daemon=True).start()
        return await asyncio.wrap_future(result)
