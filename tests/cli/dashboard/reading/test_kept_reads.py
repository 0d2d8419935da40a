"""What was read a moment ago is not read again, unless something has changed or somebody else asks."""

from __future__ import annotations

import asyncio
from itertools import count

import pytest

from stromboli.cli.dashboard.reading.kept_reads import MOST_OWN_READS, READS_KEPT, KeptReads
from tests.cli.dashboard.view_requests import view_request


def test_a_reading_is_kept_for_its_viewer_while_nothing_changes():
    async def work() -> None:
        numbers, kept = count(), KeptReads()

        async def read() -> int:
            return next(numbers)

        assert await kept.read(("ann", "jobs", "default", "train"), 60, "a", read) == 0
        assert await kept.read(("ann", "jobs", "default", "train"), 60, "a", read) == 0
        assert await kept.read(("ben", "jobs", "default", "train"), 60, "a", read) == 1
        assert await kept.read(("ann", "jobs", "default", "train"), 60, "b", read) == 2
        kept.forget("jobs", "default", "train")
        assert await kept.read(("ann", "jobs", "default", "train"), 60, "b", read) == 3
        assert await kept.read(("ann", "jobs", "default", "train"), 0, "b", read) == 3
        kept.forget("jobs", "default", "another")
        assert await kept.read(("ann", "jobs", "default", "train"), 60, "b", read) == 3

    asyncio.run(work())


def test_so_many_are_kept_and_no_more():
    async def work() -> None:
        kept, read = KeptReads(), list[str]()

        async def reading(name: str) -> str:
            read.append(name)
            return name

        names = [str(number) for number in range(READS_KEPT + 1)]
        for name in [*names, names[-1], names[0]]:
            await kept.read(("ann", name), 60, None, lambda name=name: reading(name))
        assert read == [*names, names[0]]

    asyncio.run(work())


def test_each_server_has_its_own():
    one, other = view_request("/").cluster, view_request("/").cluster
    assert one.reads is not other.reads


def test_what_is_being_read_is_not_read_twice():
    async def work() -> None:
        kept, begun = KeptReads(), 0
        go = asyncio.Event()

        async def reading() -> int:
            nonlocal begun
            begun += 1
            await go.wait()
            return begun

        asked = [asyncio.create_task(kept.read(("ann", "train"), 60, "a", reading)) for _ in range(5)]
        await asyncio.sleep(0)
        asked[0].cancel()  # one who leaves takes nothing from the others
        await asyncio.sleep(0)
        go.set()
        assert await asyncio.gather(*asked[1:]) == [1, 1, 1, 1]

    asyncio.run(work())


def test_one_viewer_reads_a_little_at_a_time():
    async def work() -> None:
        kept, running, most = KeptReads(), 0, 0
        go = asyncio.Event()

        async def reading() -> None:
            nonlocal running, most
            running += 1
            most = max(most, running)
            await go.wait()
            running -= 1

        async def read(viewer: str, number: int) -> None:
            await kept.read((viewer, str(number)), 60, None, reading)

        greedy = [asyncio.create_task(read("greedy", number)) for number in range(20)]
        await asyncio.sleep(0.01)
        assert most == MOST_OWN_READS
        other = asyncio.create_task(read("ann", 0))
        await asyncio.sleep(0.01)
        assert most == MOST_OWN_READS + 1
        go.set()
        await asyncio.gather(*greedy, other)

    asyncio.run(work())


def test_a_reading_that_fails_fails_for_all_and_is_tried_again():
    async def work() -> None:
        kept, numbers = KeptReads(), count()

        async def reading() -> int:
            if next(numbers) == 0:
                raise ZeroDivisionError
            return 1

        with pytest.raises(ZeroDivisionError):
            await kept.read(("ann", "train"), 60, "a", reading)
        assert await kept.read(("ann", "train"), 60, "a", reading) == 1

    asyncio.run(work())
