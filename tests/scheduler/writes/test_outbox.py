"""Ten thousand orders at once: the first are with the writer in the same turn, the others follow in their order."""

from __future__ import annotations

import asyncio

from stromboli.engine.decisions import Bind
from stromboli.scheduler.writes.held_orders import PORTION, Outbox
from stromboli.scheduler.writes.write_orders import WriteOrder


def orders(count: int) -> list[WriteOrder]:
    return [WriteOrder(Bind("ns", f"p{number}", f"u{number}", "n", "job")) for number in range(count)]


def outbox_into(submitted: list[WriteOrder]) -> Outbox:
    return Outbox(submitted.append, lambda: 0, lambda: 0.0)


def test_a_portion_is_handed_over_at_once_and_one_in_every_turn() -> None:
    async def story() -> None:
        submitted: list[WriteOrder] = []
        outbox, first, second = outbox_into(submitted), orders(2 * PORTION + 1), orders(3)
        outbox.submit(first)
        assert submitted == first[:PORTION]
        outbox.submit(second)  # behind those that wait
        for _ in range(5):
            await asyncio.sleep(0)
        assert submitted == first + second
        outbox.submit(second)
        assert submitted == first + second + second

    asyncio.run(story())


def test_what_waits_is_not_lost_when_the_process_ends() -> None:
    async def story() -> None:
        submitted: list[WriteOrder] = []
        outbox, many = outbox_into(submitted), orders(3 * PORTION)
        outbox.submit(many)
        outbox.flush()
        assert submitted == many
        await asyncio.sleep(0)
        outbox.submit(many[:2])
        assert submitted == many + many[:2]

    asyncio.run(story())
