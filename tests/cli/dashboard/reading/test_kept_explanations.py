"""Explanations are computed one at a time, kept for a while, and never keep a page waiting for long."""

from __future__ import annotations

import asyncio

import pytest

from stromboli.cli.cluster.cluster_errors import ClusterError
from stromboli.cli.dashboard.reading import kept_explanations
from stromboli.cli.dashboard.reading.kept_explanations import MOST_EXPLANATIONS_AWAITED, Explanations
from stromboli.engine.explanation.subjects.explanation_document import Explanation


@pytest.fixture(autouse=True)
def _impatience(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_explanations, "PATIENCE", 0.02)


class Work:
    """Explains when it is let."""

    def __init__(self) -> None:
        self.begun = 0
        self.running = 0
        self.most = 0
        self.released = asyncio.Event()

    async def explain(self) -> Explanation:
        self.begun += 1
        self.running += 1
        self.most = max(self.most, self.running)
        await self.released.wait()
        self.running -= 1
        return Explanation(policy="p")


def test_a_page_is_shown_without_it_until_it_is_there():
    async def work() -> None:
        explanations, slow = Explanations(), Work()
        assert await explanations.get(("ann", "train"), slow.explain) is None
        assert await explanations.get(("ann", "train"), slow.explain) is None
        slow.released.set()
        known = await explanations.get(("ann", "train"), slow.explain)
        assert known is not None
        assert known.document == Explanation(policy="p")
        assert await explanations.get(("ann", "train"), slow.explain) == known
        assert slow.begun == 1

    asyncio.run(work())


def test_one_is_computed_at_a_time_and_so_many_are_awaited():
    async def work() -> None:
        explanations, slow = Explanations(), Work()
        for number in range(MOST_EXPLANATIONS_AWAITED + 3):
            assert await explanations.get(("ann", str(number)), slow.explain) is None
        assert slow.begun == 1
        slow.released.set()
        await asyncio.sleep(0.05)
        assert (slow.begun, slow.most) == (MOST_EXPLANATIONS_AWAITED, 1)

    asyncio.run(work())


def test_what_goes_wrong_is_told_and_not_tried_again_at_once():
    async def work() -> None:
        explanations, attempts = Explanations(), list[int]()

        async def fail() -> Explanation:
            attempts.append(1)
            raise ClusterError("no such job")

        async def crash() -> Explanation:
            raise ZeroDivisionError

        for _ in range(3):
            known = await explanations.get(("ann", "train"), fail)
            assert known is not None
            assert (known.document, known.problem) == (None, "no such job")
        assert len(attempts) == 1
        known = await explanations.get(("ann", "other"), crash)
        assert known is not None
        assert "the log of the dashboard says why" in known.problem

    asyncio.run(work())
