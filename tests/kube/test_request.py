"""How fast requests are sent and repeated, and that they are sent only while we lead; in time that the test sets."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stromboli.kube.request import Backoff, GuardedClient, LeaseLost, RateLimiter, Request, RequestWithdrawn
from tests.kube.fake_api import FakeApi


class Time:
    """A clock that moves when somebody sleeps."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.now += seconds


def times(qps: float, burst: int, count: int, pauses: list[float] | None = None) -> list[float]:
    """When each of so many requests in a row may go."""
    time = Time()
    limiter = RateLimiter(qps, burst, time, time.sleep)

    async def all_of_them() -> list[float]:
        gone = []
        for index in range(count):
            time.now += (pauses or [0.0] * count)[index]
            await limiter.take()
            gone.append(time.now - 100.0)
        return gone

    return asyncio.run(all_of_them())


def test_a_burst_goes_at_once_and_the_rest_evenly() -> None:
    assert times(10, 3, 6) == pytest.approx([0, 0, 0, 0.1, 0.2, 0.3])


def test_after_a_rest_there_is_a_burst_again_and_no_larger_one() -> None:
    assert times(10, 2, 5, [0, 0, 0, 60, 0]) == pytest.approx([0, 0, 0.1, 60.1, 60.1])
    assert times(10, 2, 5, [60, 0, 0, 0, 0])[2:] == pytest.approx([60.1, 60.2, 60.3])


def test_without_a_rate_there_is_no_limit() -> None:
    assert times(0, 0, 1000)[-1] == 0


@given(
    qps=st.floats(0.5, 1000),
    burst=st.integers(1, 20),
    pauses=st.lists(st.floats(0, 2), min_size=1, max_size=60),
)
def test_in_no_stretch_of_time_do_more_go_than_rate_and_burst_allow(
    qps: float, burst: int, pauses: list[float]
) -> None:
    gone = times(qps, burst, len(pauses), pauses)
    for first in range(len(gone)):
        for last in range(first, len(gone)):
            assert last - first + 1 <= burst + qps * (gone[last] - gone[first]) + 1e-6


def test_those_who_wait_at_the_same_time_are_spread_out() -> None:
    time, slept = Time(), []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    async def many() -> None:
        limiter = RateLimiter(10, 1, time, sleep)
        await asyncio.gather(*(limiter.take() for _ in range(4)))

    asyncio.run(many())
    assert slept == pytest.approx([0.1, 0.2, 0.3])


def test_whoever_gives_up_costs_the_others_nothing() -> None:
    """Else requests that wait longer than their patience would put off all that follow, for ever."""
    time, slept = Time(), []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)
        await asyncio.sleep(60 if len(slept) == 1 else 0)

    async def story() -> None:
        limiter = RateLimiter(10, 1, time, sleep)
        await limiter.take()
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(limiter.take(), 0.01)
        await limiter.take()

    asyncio.run(story())
    assert slept == pytest.approx([0.1, 0.1])


def test_pauses_double_up_to_the_longest() -> None:
    backoff = Backoff(first=1, longest=10, jitter=lambda: 1.0)
    assert [backoff.pause(failures) for failures in (1, 2, 3, 4, 5, 1000)] == [1, 2, 4, 8, 10, 10]


def test_chance_shortens_a_pause_by_half_at_most() -> None:
    assert Backoff(first=4, jitter=lambda: 0.0).pause(1) == 2


def test_a_server_that_asks_for_more_time_gets_it_within_reason() -> None:
    backoff = Backoff(first=1, longest=10, jitter=lambda: 1.0)
    assert backoff.pause(1, retry_after=7) == 7
    assert backoff.pause(4, retry_after=7) == 8
    assert backoff.pause(1, retry_after=86400) == 20


# -- requests of a leader


def test_a_request_that_had_to_wait_is_withdrawn_once_another_leads() -> None:
    leads = True

    class Waiting(FakeApi):
        async def send(self, request: Request, timeout: float) -> bytes:
            nonlocal leads
            leads = False  # while we wait for a connection
            if not request.still_wanted():
                raise RequestWithdrawn
            return await super().send(request, timeout)

    api = Waiting()
    client = GuardedClient(api, lambda: 60.0 * leads)

    async def run() -> None:
        with pytest.raises(LeaseLost):
            await client.send(Request("POST", "/x", b"{}"))

    asyncio.run(run())
    assert api.requests == []


@pytest.mark.parametrize(("left", "timeout"), [(60.0, 10.0), (4.0, 4.0)])
def test_a_request_never_outlives_the_time_for_which_nobody_else_leads(left: float, timeout: float) -> None:
    api = FakeApi()
    asyncio.run(GuardedClient(api, lambda: left).send(Request("POST", "/x", b"{}")))
    assert api.timeouts == [timeout]
