"""Work in slices, and the word about work that is not."""

from __future__ import annotations

import asyncio
import time

import pytest

from stromboli.embedded import time_slices
from stromboli.embedded.time_slices import LARGE, TimeSlices, pause_if_large, warn_of_lag


def test_a_slice_ends_after_its_time_and_others_have_their_turn() -> None:
    async def scenario() -> None:
        turns: list[str] = []
        slices = TimeSlices()
        asyncio.get_running_loop().call_soon(turns.append, "other")
        time.sleep(2 * time_slices.SLICE)
        assert slices.due
        assert not turns
        await slices.pause()
        assert turns == ["other"]

    asyncio.run(scenario())


def test_only_a_large_request_pauses() -> None:
    async def scenario() -> None:
        turns: list[str] = []
        asyncio.get_running_loop().call_soon(turns.append, "other")
        await pause_if_large(LARGE - 1)
        assert not turns
        await pause_if_large(LARGE)
        assert turns == ["other"]

    asyncio.run(scenario())


def test_a_loop_that_serves_nobody_for_long_is_told_in_the_log(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(time_slices, "LAG_INTERVAL", 0.01)
    monkeypatch.setattr(time_slices, "LAG_WARNING", 0.1)

    async def scenario() -> None:
        task = asyncio.create_task(warn_of_lag())
        await asyncio.sleep(0)
        time.sleep(0.2)
        async with asyncio.timeout(10):
            while not caplog.messages:
                await asyncio.sleep(0.01)
        task.cancel()

    asyncio.run(scenario())
    assert caplog.messages[0].startswith("the event loop served nobody for")
