"""The thread that keeps in step, and decides once it is its turn."""

from __future__ import annotations

import asyncio
import gc
import math
import threading
import time
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from stromboli.api.types.meta import ObjectMeta
from stromboli.api.types.node import Node
from stromboli.engine.plugin import Plugin
from stromboli.scheduler import cycle_thread
from stromboli.scheduler.cycle_thread import STUCK_AFTER, CycleThread
from stromboli.scheduler.scheduler_metrics import SchedulerMetrics
from stromboli.scheduler.thread_seam import ThreadSeam


@pytest.fixture(autouse=True)
def thaw() -> Iterator[None]:
    """What the thread froze is collected again."""
    yield
    gc.unfreeze()


class World:
    """Notes what is done with it, and by whom; its cycles have outcomes that can be neither measured nor logged."""

    def __init__(self, broken: bool = False) -> None:
        self.done: list[str] = []
        self.threads: set[str] = set()
        self._broken = broken
        self.urgency = math.inf
        self.loading = False
        self.seam = ThreadSeam(asyncio.get_running_loop())

    def follow(self) -> None:
        self._note("follow")
        if self._broken:
            raise RuntimeError("a bug")

    def take_over(self) -> None:
        self._note("take over")

    def absorb(self) -> None:
        self._note("absorb")
        self.seam.changes.take()
        self.seam.run_calls()

    def note_outcome(self, outcome: Any) -> None: ...

    def take_patience(self, engine: Any) -> float:
        return self.urgency

    def cycle(self) -> Any:
        self._note("cycle")
        self.urgency = math.inf
        return SimpleNamespace(decisions=[None, 1 / 3], seconds={"open": "not a number"})

    def _note(self, what: str) -> None:
        self.done.append(what)
        self.threads.add(threading.current_thread().name)


def thread_over(world: World, period: float = 0.001, on_change: bool = True) -> CycleThread:
    scheduler = SimpleNamespace(cycle=world.cycle, period=period, world=world, engine=None)
    return CycleThread(world, scheduler, SchedulerMetrics(), world.seam, on_change)  # type: ignore[arg-type]


async def until(condition: Any) -> None:
    async with asyncio.timeout(30):
        while not condition():
            await asyncio.sleep(0.001)


def test_it_follows_until_it_leads_and_then_decides_until_it_is_stopped() -> None:
    async def story() -> tuple[World, CycleThread]:
        world = World()
        thread = thread_over(world)
        thread.start()
        await until(lambda: world.done.count("follow") > 2)
        assert not world.seam.leads
        world.seam.lead()
        await until(lambda: world.done.count("cycle") > 2)
        assert world.seam.leads
        world.seam.stop()
        await asyncio.wait_for(thread.ended.wait(), 30)
        return world, thread

    world, thread = asyncio.run(story())
    assert world.threads == {"cycles"}
    assert list(dict.fromkeys(world.done)) == ["follow", "take over", "cycle"]
    assert world.done.count("take over") == 1
    assert not thread.crashed
    assert not world.seam.leads


def test_pods_of_the_first_list_are_taken_in_as_they_come() -> None:
    async def story() -> None:
        world = World()
        world.loading = True
        thread = thread_over(world, period=3600.0)
        thread.start()
        await until(lambda: world.done.count("follow") > 2)
        assert not thread.decided.is_set()
        world.seam.stop()
        await asyncio.wait_for(thread.ended.wait(), 30)

    asyncio.run(story())


def test_no_cycle_begins_once_it_is_stopped() -> None:
    async def story() -> World:
        world = World()
        thread = thread_over(world, period=60)
        thread.start()
        world.seam.lead()
        await until(lambda: "cycle" in world.done)
        world.seam.stop()
        await asyncio.wait_for(thread.ended.wait(), 30)
        return world

    assert asyncio.run(story()).done == ["take over", "cycle"]


def test_news_starts_a_cycle_long_before_the_period_and_other_changes_do_not() -> None:
    async def story() -> World:
        world = World()
        thread = thread_over(world, period=600)
        thread.start()
        world.seam.lead()
        await until(lambda: "cycle" in world.done)
        world.seam.changes.put(Node(ObjectMeta("n1")), new=False)
        await until(lambda: "absorb" in world.done)
        assert await world.seam.result_from_cycle(lambda: world.done.count("cycle")) == 1
        world.urgency = 0.0
        world.seam.changes.put(Node(ObjectMeta("n1")), new=False)
        await until(lambda: world.done.count("cycle") == 2)
        world.seam.stop()
        await asyncio.wait_for(thread.ended.wait(), 30)
        return world

    assert asyncio.run(story()).threads == {"cycles"}


def test_by_the_period_alone_changes_are_applied_and_start_no_cycle() -> None:
    async def story() -> list[str]:
        world = World()
        world.urgency = 0.0
        thread = thread_over(world, period=600, on_change=False)
        thread.start()
        world.seam.lead()
        await until(lambda: "cycle" in world.done)
        for _ in range(3):
            world.urgency = 0.0
            world.seam.changes.put(Node(ObjectMeta("n1")), new=False)
            await world.seam.result_from_cycle(lambda: None)
        world.seam.stop()
        await asyncio.wait_for(thread.ended.wait(), 30)
        return world.done

    assert asyncio.run(story()).count("cycle") == 1


def test_whoever_is_stopped_while_standing_by_decides_nothing() -> None:
    async def story() -> World:
        world = World()
        thread = thread_over(world)
        thread.start()
        await until(lambda: world.done)
        world.seam.stop()
        await asyncio.wait_for(thread.ended.wait(), 30)
        return world

    assert set(asyncio.run(story()).done) == {"follow"}


def test_a_loop_that_breaks_down_says_so_at_once_even_while_standing_by() -> None:
    async def story() -> CycleThread:
        thread = thread_over(World(broken=True))
        thread.start()
        await asyncio.wait_for(thread.ended.wait(), 30)
        return thread

    assert asyncio.run(story()).crashed


def test_a_cycle_that_does_not_come_to_its_end_is_a_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    async def story() -> tuple[str, str]:
        thread = thread_over(World())
        before = thread.problem
        now = time.monotonic()
        monkeypatch.setattr(time, "monotonic", lambda: now + STUCK_AFTER + 1)
        return before, thread.problem

    before, after = asyncio.run(story())
    assert before == ""
    assert after.startswith("no cycle has ended for 30")


def test_a_plugin_that_hangs_in_the_cycle_is_a_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    """The watchdog's own thread sees it; in a tenth of a second instead of a minute."""
    monkeypatch.setattr(cycle_thread, "SLOW_AFTER", 0.05)
    monkeypatch.setattr(cycle_thread, "HANGS_AFTER", 0.1)
    monkeypatch.setattr(cycle_thread, "INTERVAL", 0.01)
    free = threading.Event()

    class Hanging(Plugin):
        name = "hanging"

        def job_order(self, job: Any) -> int:
            free.wait(20)
            return 0

    async def story() -> str:
        world = World()
        plugin = Hanging(None, {})
        monkeypatch.setattr(world, "cycle", lambda: plugin.job_order(None))
        thread = thread_over(world)
        thread.start()
        world.seam.lead()
        await until(lambda: thread.problem)
        problem = thread.problem
        free.set()
        await until(lambda: not thread.problem)
        world.seam.stop()
        await asyncio.wait_for(thread.ended.wait(), 30)
        return problem

    assert "plugin 'hanging' has been running in job_order for" in asyncio.run(story())
