"""The thread that keeps in step, and decides once it is its turn."""

from __future__ import annotations

import asyncio
import gc
import threading
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from stromboli.scheduler.cycle_thread import Loop


@pytest.fixture(autouse=True)
def thaw() -> Iterator[None]:
    """What a loop froze is collected again."""
    yield
    gc.unfreeze()


class World:
    """Notes what is done with it, and by whom."""

    def __init__(self, broken: bool = False) -> None:
        self.done: list[str] = []
        self.threads: set[str] = set()
        self._broken = broken
        self.stop = threading.Event()

    def follow(self) -> None:
        self._note("follow")
        if self._broken:
            raise RuntimeError("a bug")

    def take_over(self) -> None:
        self._note("take over")

    def cycle(self) -> Any:
        self._note("cycle")
        return SimpleNamespace(decisions=[], seconds={})

    def sleep(self, seconds: float) -> None:
        self.stop.wait(seconds)

    def _note(self, what: str) -> None:
        self.done.append(what)
        self.threads.add(threading.current_thread().name)


def loop_over(world: World) -> Loop:
    scheduler = SimpleNamespace(cycle=world.cycle, period=0.001, world=world)
    measuring = SimpleNamespace(cycle=lambda outcome: None)
    return Loop(world, scheduler, measuring, world.stop)  # type: ignore[arg-type]


async def until(condition: Any) -> None:
    async with asyncio.timeout(5):
        while not condition():
            await asyncio.sleep(0.001)


def test_it_follows_until_it_leads_and_then_decides_until_it_is_stopped() -> None:
    world = World()

    async def story() -> Loop:
        loop = loop_over(world)
        loop.start()
        await until(lambda: world.done.count("follow") > 2)
        assert not loop.leads
        loop.lead()
        await until(lambda: world.done.count("cycle") > 2)
        assert loop.leads
        loop.stop()
        await asyncio.wait_for(loop.ended.wait(), 5)
        return loop

    loop = asyncio.run(story())
    assert world.threads == {"cycles"}
    assert list(dict.fromkeys(world.done)) == ["follow", "take over", "cycle"]
    assert world.done.count("take over") == 1
    assert not loop.crashed
    assert not loop.leads


def test_whoever_is_stopped_while_standing_by_decides_nothing() -> None:
    world = World()

    async def story() -> None:
        loop = loop_over(world)
        loop.start()
        await until(lambda: world.done)
        loop.stop()
        await asyncio.wait_for(loop.ended.wait(), 5)

    asyncio.run(story())
    assert set(world.done) == {"follow"}


def test_a_loop_that_breaks_down_says_so_at_once_even_while_standing_by() -> None:
    async def story() -> Loop:
        loop = loop_over(World(broken=True))
        loop.start()
        await asyncio.wait_for(loop.ended.wait(), 5)
        return loop

    assert asyncio.run(story()).crashed
