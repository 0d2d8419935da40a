"""The runtime of all controllers survives what a sync does."""

from __future__ import annotations

import asyncio

from stromboli.controllers.reconciler import Reconciler


class Cancelling(Reconciler[str]):
    """The sync of the key `bad` waits for something that is cancelled."""

    name = "cancelling"
    workers = 1

    def __init__(self) -> None:
        super().__init__()
        self.synced: list[str] = []

    async def sync(self, key: str) -> float | None:
        self.synced.append(key)
        if key == "bad":
            raise asyncio.CancelledError
        return None


def test_a_sync_that_waits_for_something_cancelled_costs_no_worker() -> None:
    async def run() -> list[str]:
        controller = Cancelling()
        controller.start()
        controller.queue.add("bad")
        controller.queue.add("good")
        async with asyncio.timeout(30):
            while "good" not in controller.synced:
                await asyncio.sleep(0.001)
        await controller.stop()
        return controller.synced

    assert asyncio.run(run())[:2] == ["bad", "good"]
