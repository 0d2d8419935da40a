"""What a process shows of its health: alive while it comes round, ready once it leads or could take over."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from stromboli.scheduler.cycle_thread import STUCK
from stromboli.scheduler.introspection import Showing


def showing(leader: str = "somebody", **state: Any) -> Showing:
    """A look at a replica, by default one that stands by and is in step."""
    state = {"leads": False, "silence": 1.0, "blind": [], **state}
    duty = SimpleNamespace(
        loop=SimpleNamespace(leads=state["leads"], silence=state["silence"]),
        mirror=SimpleNamespace(blind=state["blind"]),
    )
    election = (
        SimpleNamespace(leader=leader, may_write=lambda: leader == "me") if leader != "nobody" else None
    )
    return Showing(None, None, duty, election, None)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("shown", "why"),
    [
        (showing(), ""),
        (showing("me", leads=True), ""),
        (showing("nobody", leads=True), ""),
        (showing("me"), "about to lead"),
        (showing("nobody"), "about to lead"),
        (showing(leader=""), "the lease was not read yet"),
        (showing(blind=["pods", "queues"]), "not in step with the API server yet: pods, queues"),
    ],
)
def test_a_replica_is_ready_when_it_leads_or_could(shown: Showing, why: str) -> None:
    assert shown.ready() == why


def test_who_is_told_to_stop_is_not_ready() -> None:
    shown = showing(leads=True)
    shown.stopping = True
    assert shown.ready() == "stopping"


def test_who_does_not_come_round_should_be_restarted() -> None:
    assert showing().alive() == ""
    assert "no cycle has ended" in showing(silence=STUCK + 1).alive()


def test_whoever_asks_for_a_dump_while_one_is_written_gets_that_one() -> None:
    class Slow(Showing):
        begun = 0

        async def _dump(self) -> str:
            self.begun += 1
            await asyncio.sleep(0.01)
            return f"dump {self.begun}"

    async def ask() -> list[str]:
        shown = Slow(None, None, None, None, None)  # type: ignore[arg-type]
        shown.dump_soon()
        said = await asyncio.gather(shown.dump(), shown.dump())
        return [*said, await shown.dump()]

    assert asyncio.run(ask()) == ["dump 1", "dump 1", "dump 2"]
