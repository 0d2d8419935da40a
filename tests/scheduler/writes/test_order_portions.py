"""Ten thousand orders at once: the first are with the writer in the same turn, the others follow in their order."""

from __future__ import annotations

import asyncio

from stromboli.engine.decisions import Bind
from stromboli.scheduler.writes.order_portions import PORTION, OrderPortions
from stromboli.scheduler.writes.write_orders import WriteOrder


def orders(count: int) -> list[WriteOrder]:
    return [WriteOrder(Bind("ns", f"p{number}", f"u{number}", "n", "job")) for number in range(count)]


def test_a_portion_is_handed_over_at_once_and_one_in_every_turn() -> None:
    async def story() -> None:
        submitted: list[WriteOrder] = []
        portions, first, second = OrderPortions(submitted.extend), orders(2 * PORTION + 1), orders(3)
        portions.put(first)
        assert submitted == first[:PORTION]
        portions.put(second)  # behind those that wait
        for _ in range(5):
            await asyncio.sleep(0)
        assert submitted == first + second
        portions.put(second)
        assert submitted == first + second + second

    asyncio.run(story())


def test_what_waits_is_not_lost_when_the_process_ends() -> None:
    async def story() -> None:
        submitted: list[WriteOrder] = []
        portions, many = OrderPortions(submitted.extend), orders(3 * PORTION)
        portions.put(many)
        portions.flush()
        assert submitted == many
        await asyncio.sleep(0)
        portions.put(many[:2])
        assert submitted == many + many[:2]

    asyncio.run(story())
