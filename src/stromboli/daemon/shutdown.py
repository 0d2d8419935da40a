"""Work that is left when somebody says stop."""

from __future__ import annotations

import asyncio


class UntilStopped:
    """What is inside is left when we are told to stop."""

    def __init__(self, stopping: asyncio.Event):
        self._stopping = stopping
        self._watch: asyncio.Task[None] | None = None

    async def __aenter__(self) -> None:
        self._watch = asyncio.create_task(self._wait(asyncio.current_task()))

    async def _wait(self, inside: asyncio.Task[object] | None) -> None:
        await self._stopping.wait()
        if inside is not None:
            inside.cancel()

    async def __aexit__(self, kind: type[BaseException] | None, *_: object) -> bool:
        if self._watch is not None:
            self._watch.cancel()
        current = asyncio.current_task()
        if kind is asyncio.CancelledError and self._stopping.is_set():
            if current is not None:
                current.uncancel()
            return True
        return False
