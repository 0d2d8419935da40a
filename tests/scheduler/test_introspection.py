"""What a process shows of its health: alive while it comes round, ready once it leads or could take over."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from stromboli.scheduler.introspection import Introspection


def introspection(leader: str = "somebody", **state: Any) -> Introspection:
    """A look at a replica, by default one that stands by and is in step."""
    state = {"leads": False, "problem": "", "missing": [], **state}
    replica = SimpleNamespace(
        seam=SimpleNamespace(leads=state["leads"]),
        thread=SimpleNamespace(problem=state["problem"]),
        watches=SimpleNamespace(missing_essentials=state["missing"]),
    )
    election = (
        SimpleNamespace(leader=leader, may_write=lambda: leader == "me") if leader != "nobody" else None
    )
    return Introspection(None, None, replica, election, None)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("shown", "why"),
    [
        (introspection(), ""),
        (introspection("me", leads=True), ""),
        (introspection("nobody", leads=True), ""),
        (introspection("me"), "about to lead"),
        (introspection("nobody"), "about to lead"),
        (introspection(leader=""), "the lease was not read yet"),
        (introspection(missing=["pods", "queues"]), "not in step with the API server yet: pods, queues"),
    ],
)
def test_a_replica_is_ready_when_it_leads_or_could(shown: Introspection, why: str) -> None:
    assert shown.ready() == why


def test_who_is_told_to_stop_is_not_ready() -> None:
    shown = introspection(leads=True)
    shown.stopping = True
    assert shown.ready() == "stopping"


def test_who_does_not_come_round_should_be_restarted() -> None:
    assert introspection().alive() == ""
    assert introspection(problem="plugin 'x' has been running").alive() == "plugin 'x' has been running"


def test_whoever_asks_for_a_dump_while_one_is_written_gets_that_one() -> None:
    class Slow(Introspection):
        begun = 0

        async def _dump(self) -> str:
            self.begun += 1
            await asyncio.sleep(0.01)
            return f"dump {self.begun}"

    async def ask() -> list[str]:
        shown = Slow(None, None, None, None, None)  # type: ignore[arg-type]
        shown.dump_soon()
        paths = await asyncio.gather(shown.dump(), shown.dump())
        return [*paths, await shown.dump()]

    assert asyncio.run(ask()) == ["dump 1", "dump 1", "dump 2"]
