"""Those who write much take turns, a few in each round of the event loop."""

from __future__ import annotations

import asyncio

from stromboli.embedded.store.write_turns import MOST_WRITES, WriteTurns


def test_a_crowd_is_served_in_order_and_leaves_room_for_others_in_every_round() -> None:
    async def scenario() -> None:
        turns, served, rounds = WriteTurns(), list[int](), list[int]()

        async def writer(number: int) -> None:
            await turns.next()
            served.append(number)

        writers = [asyncio.create_task(writer(number)) for number in range(100)]
        while len(served) < 100:
            before = len(served)
            await asyncio.sleep(0)
            rounds.append(len(served) - before)
        await asyncio.gather(*writers)
        assert served == list(range(100))
        assert max(rounds) <= 2 * MOST_WRITES

    asyncio.run(scenario())


def test_who_leaves_while_waiting_takes_no_turn() -> None:
    async def scenario() -> None:
        turns = WriteTurns()
        crowd = [asyncio.create_task(turns.next()) for _ in range(5 * MOST_WRITES)]
        await asyncio.sleep(0)
        for waiting in crowd[MOST_WRITES:-1]:
            waiting.cancel()
        await asyncio.wait_for(crowd[-1], 10)
        await asyncio.wait(crowd)

    asyncio.run(scenario())
