"""Finished jobs go when their time is over, and not before."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from stromboli.controllers.finished_job_gc import GarbageController
from stromboli.kube.request import Request
from tests.controllers.in_memory_api import InMemoryApi
from tests.controllers.running import NOW, SettableClock, running_controllers, wait_until, wait_until_idle


def job(
    name: str = "j",
    phase: str = "Completed",
    ttl: int | None = 60,
    since: str | None = "2026-01-01T00:00:00Z",
) -> Any:
    state = {"phase": phase, **({"lastTransitionTime": since} if since else {})}
    spec = {} if ttl is None else {"ttlSecondsAfterFinished": ttl}
    return {"metadata": {"name": name, "namespace": "ns"}, "spec": spec, "status": {"state": state}}


async def left_after(seconds: float, obj: Any) -> bool:
    api = InMemoryApi()
    api.put("jobs", obj)
    async with running_controllers(api, GarbageController, clock=SettableClock(NOW + seconds)) as runner:
        await wait_until_idle(api, runner)
    return bool(api.every("jobs"))


@pytest.mark.parametrize("phase", ["Completed", "Failed", "Terminated"])
def test_a_finished_job_goes_when_its_time_is_over(phase: str) -> None:
    assert not asyncio.run(left_after(60, job(phase=phase)))
    assert asyncio.run(left_after(59, job(phase=phase)))
    assert not asyncio.run(left_after(0, job(phase=phase, ttl=0)))


@pytest.mark.parametrize(
    "obj",
    [
        job(phase="Aborted"),
        job(phase="Running"),
        job(phase=""),
        job(ttl=None),
        job(since=None),
    ],
    ids=["aborted", "running", "new", "no ttl", "no time"],
)
def test_no_other_job_ever_goes(obj: Any) -> None:
    assert asyncio.run(left_after(1e6, obj))


def test_a_job_is_looked_at_again_when_its_time_comes() -> None:
    async def run() -> None:
        api = InMemoryApi()
        clock = SettableClock(NOW + 59.95)
        api.put("jobs", job())
        async with running_controllers(api, GarbageController, clock=clock) as runner:
            await wait_until_idle(api, runner)
            assert api.requests == []
            clock.now = NOW + 60
            await wait_until(lambda: not api.every("jobs"))
        options = next(request for request in api.requests if request.method == "DELETE").body
        assert options is not None
        assert b'"propagationPolicy":"Foreground"' in options
        assert b'"preconditions":{"uid":"uid-j"}' in options

    asyncio.run(run())


def test_a_job_whose_time_was_prolonged_meanwhile_stays() -> None:
    async def run() -> None:
        api = InMemoryApi()
        api.put("jobs", job())

        def prolong(request: Request) -> None:
            if request.method == "GET":
                api.before = lambda _: None
                api.put("jobs", job(ttl=10_000))

        api.before = prolong
        async with running_controllers(api, GarbageController, clock=SettableClock(NOW + 61)) as runner:
            await wait_until_idle(api, runner)
        assert [request.method for request in api.requests] == ["GET"]

    asyncio.run(run())
