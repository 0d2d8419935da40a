"""The part of the time of a thread that one coroutine has."""

from __future__ import annotations

import asyncio
import time

import pytest

from stromboli.cli.dashboard.server.processor_time import ProcessorTime


def compute(seconds: float) -> None:
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass


def test_what_others_do_while_it_waits_is_not_counted() -> None:
    async def work() -> str:
        compute(0.02)
        await asyncio.sleep(0.05)
        compute(0.02)
        return "done"

    async def other() -> None:
        await asyncio.sleep(0.01)
        compute(0.2)

    async def story() -> float:
        others = asyncio.create_task(other())
        measured = ProcessorTime(work())
        assert await measured == "done"
        await others
        return measured.seconds

    assert 0.04 <= asyncio.run(story()) < 0.1


def test_errors_and_cancellation_pass_through() -> None:
    ended = []

    async def fail() -> None:
        await asyncio.sleep(0)
        raise ZeroDivisionError

    async def wait() -> None:
        try:
            await asyncio.sleep(60)
        finally:
            ended.append(True)

    async def story() -> None:
        with pytest.raises(ZeroDivisionError):
            await ProcessorTime(fail())
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.01):
                await ProcessorTime(wait())
        assert ended == [True]

    asyncio.run(story())
