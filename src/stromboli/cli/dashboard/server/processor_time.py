"""How long a coroutine has the processor, without what others do while it waits."""

from __future__ import annotations

import time
from collections.abc import Coroutine, Generator
from typing import Any, Generic, TypeVar

Result = TypeVar("Result")


class ProcessorTime(Generic[Result]):
    """Awaits a coroutine, and adds up its own part of the time of the thread."""

    def __init__(self, coroutine: Coroutine[Any, Any, Result]) -> None:
        self._coroutine = coroutine
        self.seconds = 0.0

    def __await__(self) -> Generator[Any, Any, Result]:
        awaited = self._step(None)
        while not isinstance(awaited, StopIteration):
            try:
                yield awaited
            except BaseException as error:  # it is cancelled
                awaited = self._step(error)
            else:
                awaited = self._step(None)
        result: Result = awaited.value
        return result

    def _step(self, error: BaseException | None) -> Any:
        """Let it run until it waits again, for what is returned; a `StopIteration` with its result at its end."""
        began = time.thread_time()
        try:
            return self._coroutine.send(None) if error is None else self._coroutine.throw(error)
        except StopIteration as end:
            return end
        finally:
            self.seconds += time.thread_time() - began
