"""Controllers at work in a test: on an API server in memory, until nothing is left to be done."""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from typing import Any

from stromboli.controllers.controller import Controller
from stromboli.controllers.options import Options
from stromboli.controllers.runner import ControllerRunner
from tests.controllers.in_memory_api import InMemoryApi

NOW = 1_767_225_600.0
"""2026-01-01, when everything in memory was created."""


class SettableClock:
    """A clock that a test sets."""

    def __init__(self, now: float = NOW) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


@asynccontextmanager
async def running_controllers(
    api: InMemoryApi,
    *kinds: type[Controller[Any]],
    options: Options | None = None,
    clock: Callable[[], float] | None = None,
    write_time_left: Callable[[], float] = lambda: math.inf,
) -> AsyncIterator[ControllerRunner]:
    """A runner that works as long as the block lasts."""
    runner = ControllerRunner(api, kinds, options, write_time_left, clock=clock or SettableClock())  # type: ignore[arg-type]
    running = asyncio.create_task(runner.run())
    try:
        yield runner
    finally:
        runner.stop()
        async with asyncio.timeout(60):
            await running


async def wait_until_idle(api: InMemoryApi, runner: ControllerRunner, seconds: float = 60.0) -> None:
    """Wait until the runner has seen everything and has nothing to do; keys that failed are retried soon."""
    async with asyncio.timeout(seconds):
        calm = 0
        while calm < (20 if any(controller.queue.failing for controller in runner.controllers) else 3):
            asked = len(api.requests)
            await asyncio.sleep(0.005)
            calm = calm + 1 if runner.idle and len(api.requests) == asked else 0


async def wait_until(holds: Callable[[], bool], seconds: float = 60.0) -> None:
    async with asyncio.timeout(seconds):
        while not holds():
            await asyncio.sleep(0.005)


def names(objects: Iterable[dict[str, Any]]) -> list[str]:
    return sorted(obj["metadata"]["name"] for obj in objects)
