"""The objects of a live cluster are read several kinds at a time."""

import asyncio

import pytest

from stromboli.api.types.meta import Object, ObjectMeta
from stromboli.api.types.scheduling import Queue
from stromboli.cli.simulate.live_cluster import all_or_first_error
from stromboli.kube.request import ApiError


async def listed(name: str, turns: int) -> list[Object]:
    for _ in range(turns):
        await asyncio.sleep(0)
    return [Queue(ObjectMeta(name))]


def test_lists_stay_in_their_order_whichever_comes_first() -> None:
    async def read() -> list[list[Object]]:
        return await all_or_first_error([listed("slow", 5), listed("quick", 0)])

    assert [queue.name for queues in asyncio.run(read()) for queue in queues] == ["slow", "quick"]


def test_a_list_that_is_refused_ends_the_others() -> None:
    given_up = []

    async def endless() -> list[Object]:
        try:
            await asyncio.Event().wait()
        finally:
            given_up.append("endless")
        return []

    async def refused() -> list[Object]:
        await asyncio.sleep(0)
        raise ApiError(403, "Forbidden", "pods is forbidden")

    async def read() -> None:
        await all_or_first_error([endless(), refused()])

    with pytest.raises(ApiError, match="pods is forbidden"):
        asyncio.run(read())
    assert given_up == ["endless"]
