"""Explanations are computed one at a time, kept for a while, and never keep a page waiting for long."""

from __future__ import annotations

import asyncio
import threading
import time
from types import SimpleNamespace

import pytest

from stromboli.cli.cluster.cluster_errors import ClusterError
from stromboli.cli.dashboard.reading import kept_explanations
from stromboli.cli.dashboard.reading.kept_explanations import (
    LONGEST_KEPT,
    MOST_EXPLANATIONS_AWAITED,
    MOST_OWN_EXPLANATIONS,
    Explain,
    Explanations,
    KnownExplanation,
)
from stromboli.simulator.explain.explanation_document import Explanation


@pytest.fixture(autouse=True)
def _impatience(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_explanations, "PATIENCE", 0.02)


async def answer(explanations: Explanations, key: tuple[str, str], explain: Explain) -> KnownExplanation:
    """An explanation, however long it takes."""
    async with asyncio.timeout(30):
        while (known := await explanations.get(key, explain)) is None:
            pass
    return known


async def finished(explanations: Explanations) -> None:
    """Wait until nothing is being computed."""
    async with asyncio.timeout(30):
        while explanations._tasks:
            await asyncio.sleep(0.01)


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
        known = await answer(explanations, ("ann", "train"), slow.explain)
        assert known.document == Explanation(policy="p")
        assert await explanations.get(("ann", "train"), slow.explain) == known
        assert slow.begun == 1

    asyncio.run(work())


def test_one_is_computed_at_a_time_and_so_many_are_awaited():
    async def work() -> None:
        explanations, slow = Explanations(), Work()
        for number in range(MOST_EXPLANATIONS_AWAITED + 3):
            assert await explanations.get((f"viewer-{number}", "train"), slow.explain) is None
        assert slow.begun == 1
        slow.released.set()
        await finished(explanations)
        assert (slow.begun, slow.most) == (MOST_EXPLANATIONS_AWAITED, 1)

    asyncio.run(work())


def test_one_viewer_does_not_have_all_turns():
    async def work() -> None:
        explanations, slow = Explanations(), Work()
        for number in range(5):
            assert await explanations.get(("ann", str(number)), slow.explain) is None
        assert await explanations.get(("ben", "train"), slow.explain) is None
        slow.released.set()
        await finished(explanations)
        assert slow.begun == MOST_OWN_EXPLANATIONS + 1

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
            known = await answer(explanations, ("ann", "train"), fail)
            assert (known.document, known.problem) == (None, "no such job")
        assert len(attempts) == 1
        known = await answer(explanations, ("ann", "other"), crash)
        assert "the log of the dashboard says why" in known.problem

    asyncio.run(work())


def test_a_failure_is_tried_again_soon_however_long_it_took(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(kept_explanations, "EXPLANATION_TIMEOUT", 0.05)
    monkeypatch.setattr(kept_explanations, "KEPT_SECONDS", 0.05)
    monkeypatch.setattr(kept_explanations, "PATIENCE", 5)

    async def work() -> None:
        explanations, slow = Explanations(), Work()
        known = await explanations.get(("ann", "train"), slow.explain)
        assert known is not None
        assert known.problem == "it took longer than 0.05 seconds"
        await asyncio.sleep(0.1)
        await explanations.get(("ann", "train"), slow.explain)
        assert slow.begun == 2

    asyncio.run(work())


def test_no_document_is_kept_for_long_however_long_it_took(monkeypatch: pytest.MonkeyPatch):
    now = [0.0]
    clock = SimpleNamespace(monotonic=lambda: now[0], time=time.time)
    monkeypatch.setattr(kept_explanations, "time", clock)

    async def work() -> None:
        explanations, begun = Explanations(), list[int]()

        async def explain() -> Explanation:
            begun.append(1)
            now[0] += LONGEST_KEPT
            return Explanation()

        await answer(explanations, ("ann", "train"), explain)
        now[0] += LONGEST_KEPT - 1
        await answer(explanations, ("ann", "train"), explain)
        assert len(begun) == 1
        now[0] += 2
        await answer(explanations, ("ann", "train"), explain)
        await finished(explanations)
        assert len(begun) == 2

    asyncio.run(work())


def test_nothing_is_computed_beside_what_was_given_up(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(kept_explanations, "EXPLANATION_TIMEOUT", 0.05)
    released = threading.Event()

    async def work() -> None:
        explanations, begun = Explanations(), list[str]()

        async def explain(name: str) -> Explanation:
            begun.append(name)
            await explanations.compute(lambda: released.wait(30))
            return Explanation(policy=name)

        await explanations.get(("ann", "first"), lambda: explain("first"))
        known = await answer(explanations, ("ann", "first"), lambda: explain("first"))
        assert "longer than" in known.problem
        await explanations.get(("ann", "second"), lambda: explain("second"))
        assert begun == ["first"]
        monkeypatch.setattr(kept_explanations, "EXPLANATION_TIMEOUT", 30)
        monkeypatch.setattr(kept_explanations, "PATIENCE", 30)
        released.set()
        known = await explanations.get(("ann", "third"), lambda: explain("third"))
        assert known is not None
        assert known.document == Explanation(policy="third")

    try:
        asyncio.run(work())
    finally:
        released.set()


def test_the_server_ends_while_an_explanation_is_computed():
    released, begun, ended = threading.Event(), threading.Event(), threading.Event()

    def compute() -> None:
        begun.set()
        released.wait(30)
        ended.set()

    async def work() -> None:
        explanations = Explanations()

        async def explain() -> Explanation:
            await explanations.compute(compute)
            return Explanation()

        assert await explanations.get(("ann", "train"), explain) is None
        await explanations.close()

    asyncio.run(work())
    try:
        assert begun.is_set()
        assert not ended.is_set(), "nobody waited for it"
    finally:
        released.set()
