"""What was read a moment ago is not read again, unless something has changed or somebody else asks."""

from __future__ import annotations

import asyncio
from itertools import count

from stromboli.cli.dashboard.reading.kept_reads import READS_KEPT, KeptReads
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
