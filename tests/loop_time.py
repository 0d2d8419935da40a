"""The time of an event loop, which tests let pass at once."""

from __future__ import annotations

import asyncio


async def forward(seconds: float) -> None:
    """Let so much time have passed for the event loop, and what was due happen."""
    loop = asyncio.get_running_loop()
    now = loop.time
    loop.time = lambda: now() + seconds  # type: ignore[method-assign]
    for _ in range(3):
        await asyncio.sleep(0)
