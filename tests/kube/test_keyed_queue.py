"""A work queue by key: in order within a key, urgent keys first, items merged while they wait."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import Any
from unittest.mock import patch

from stromboli.kube.keyed_queue import PARKED, KeyedQueue

URGENT, LATER = 0, 2


def handled(
    first: Iterable[tuple[str, str, int]],
    during_first: Iterable[tuple[str, str, int]] = (),
    merge: Callable[[str, str], str | None] = lambda earlier, later: None,
) -> list[str]:
    """What one worker handles, in order: `first` waits when it begins, the rest comes while it handles an item."""
    order: list[str] = []
    late = list(during_first)

    async def run() -> None:
        async def handle(item: str) -> None:
            order.append(item)
            while late:
                queue.put(*late.pop(0))
            await asyncio.sleep(0)

        queue: KeyedQueue[str] = KeyedQueue(handle, 1, merge)
        for key, item, urgency in first:
            queue.put(key, item, urgency)
        queue.start()
        await queue.idle()
        await queue.stop()

    asyncio.run(run())
    return order


def test_items_of_a_key_are_handled_in_order_and_urgent_keys_first() -> None:
    items = [("a", "a1", LATER), ("b", "b1", URGENT), ("a", "a2", LATER)]
    assert handled(items) == ["b1", "a1", "a2"]


def test_an_urgent_item_behind_another_makes_its_key_urgent() -> None:
    items = [("a", "a1", LATER), ("b", "b1", LATER), ("b", "b2", URGENT)]
    assert handled(items) == ["b1", "b2", "a1"]


def test_an_urgent_item_that_merges_with_a_waiting_one_stays_urgent() -> None:
    items = [("a", "a1", LATER), ("b", "b1", LATER), ("b", "b2", URGENT)]
    assert handled(items, merge=lambda earlier, later: later) == ["b2", "a1"]


def test_an_urgent_item_that_waits_behind_a_busy_key_stays_urgent() -> None:
    first = [("a", "a1", LATER), ("b", "b1", LATER)]
    assert handled(first, during_first=[("a", "a2", URGENT)]) == ["a1", "a2", "b1"]


def test_an_item_that_is_tried_again_is_as_urgent_as_what_came_in_meanwhile() -> None:
    order: list[str] = []

    async def run() -> None:
        async def handle(item: str) -> float | None:
            order.append(item)
            if order == ["a1"]:
                for late in (("a", "a2", URGENT), ("b", "b1", LATER), ("c", "c1", LATER)):
                    queue.put(*late)
                return 0.0
            await asyncio.sleep(0.01)
            return None

        queue: KeyedQueue[str] = KeyedQueue(handle, 1)
        queue.put("a", "a1", LATER)
        queue.start()
        await queue.idle()
        await queue.stop()

    asyncio.run(run())
    assert order == ["a1", "b1", "a1", "a2", "c1"]


def test_an_item_that_is_parked_holds_no_worker_and_goes_on_when_it_is_resumed() -> None:
    handled: list[str] = []

    async def run() -> None:
        async def handle(item: str) -> float | None:
            handled.append(item)
            if item == "a1" and handled.count("a1") < 3:
                if handled.count("a1") == 2:
                    queue.resume("a")  # while it is being handled: that must not be lost
                return PARKED
            return None

        queue: KeyedQueue[str] = KeyedQueue(handle, 1)
        for key, item in (("a", "a1"), ("a", "a2"), ("b", "b1")):
            queue.put(key, item, URGENT)
        queue.start()
        while "b1" not in handled:
            await asyncio.sleep(0)
        assert handled == ["a1", "b1"]
        queue.resume("a")
        queue.resume("nothing")
        await queue.idle()
        await queue.stop()

    asyncio.run(run())
    assert handled == ["a1", "b1", "a1", "a1", "a2"]


def test_a_pause_ends_early_when_the_key_is_resumed() -> None:
    tries: list[str] = []

    async def run() -> None:
        async def handle(item: str) -> float | None:
            tries.append(item)
            return 600.0 if len(tries) == 1 else None

        queue: KeyedQueue[str] = KeyedQueue(handle, 1)
        queue.put("a", "a1", URGENT)
        queue.start()
        while not tries:
            await asyncio.sleep(0)
        await asyncio.sleep(0)
        queue.resume("a")
        await asyncio.wait_for(queue.idle(), 10.0)
        await queue.stop()

    asyncio.run(run())
    assert tries == ["a1", "a1"]


def test_keys_that_come_together_are_handled_at_the_same_time_by_workers_that_rested() -> None:
    async def run() -> None:
        together = asyncio.Barrier(3)

        async def handle(item: str) -> None:
            await together.wait()

        queue: KeyedQueue[str] = KeyedQueue(handle, 5)
        queue.start()
        for _ in range(2):
            await asyncio.sleep(0)  # all workers rest
            for key in "abc":
                queue.put(key, key, LATER)
            async with asyncio.timeout(30):
                await queue.idle()
        await queue.stop()

    asyncio.run(run())


def test_an_item_wakes_no_more_workers_than_it_takes() -> None:
    async def run() -> int:
        async def handle(item: str) -> None:
            pass

        queue: KeyedQueue[str] = KeyedQueue(handle, 50)
        queue.start()
        await asyncio.sleep(0)
        loop, turns = asyncio.get_running_loop(), 0
        call_soon = loop.call_soon

        def counted(*arguments: Any, **options: Any) -> Any:
            nonlocal turns
            turns += 1
            return call_soon(*arguments, **options)

        with patch.object(loop, "call_soon", counted):
            queue.put("a", "a1", LATER)
            await queue.idle()
        await queue.stop()
        return turns

    assert asyncio.run(run()) < 10
