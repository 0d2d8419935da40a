"""The election: one leader at a time, whatever clocks and answers do."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from stromboli.kube.election import Election, LeaseSettings
from stromboli.kube.request import ApiError, NoResponse, Request
from tests.kube.fake_api import Clock


class LeaseServer:
    """Keeps one lease, with resource versions."""

    def __init__(self) -> None:
        self.lease: dict[str, Any] | None = None
        self.down = False
        self.version = 0
        self.answering: Callable[[], None] = lambda: None

    async def send(self, request: Request, timeout: float) -> bytes:
        await asyncio.sleep(0)
        self.answering()
        if self.down:
            raise NoResponse("down")
        if request.method == "GET":
            if self.lease is None:
                raise ApiError(404)
            return msgspec.json.encode(self.lease)
        wanted = msgspec.json.decode(request.body or b"{}")
        exists = self.lease is not None
        if (request.method == "POST") == exists:
            raise ApiError(409 if exists else 404)
        if exists and wanted["metadata"]["resourceVersion"] != str(self.version):
            raise ApiError(409)
        self.version += 1
        wanted["metadata"]["resourceVersion"] = str(self.version)
        self.lease = wanted
        return msgspec.json.encode(wanted)

    @property
    def holder(self) -> str:
        return str(self.lease["spec"]["holderIdentity"]) if self.lease else ""


def candidate(server: LeaseServer, name: str, clock: Clock, wall: Clock | None = None) -> Election:
    return Election(
        server,
        LeaseSettings("volcano-system", "volcano", name),
        clock,
        wall or Clock(1.7e9),
        sleep=clock.sleep,
    )


def test_the_first_one_leads_and_the_second_waits() -> None:
    server, clock = LeaseServer(), Clock()

    async def run() -> None:
        first, second = candidate(server, "one", clock), candidate(server, "two", clock)
        await first.acquire()
        assert first.may_write()
        assert not await second._try_acquire_or_renew()
        assert not second.may_write()
        assert second.leader == "one"

    asyncio.run(run())
    assert server.lease is not None
    assert server.lease["spec"]["leaseDurationSeconds"] == 15


def test_a_leader_with_a_problem_leaves_the_lease_to_another_replica() -> None:
    """The event loop that renews goes on while a plugin hangs in another thread; renewing must not."""
    server, clock = LeaseServer(), Clock()
    problem = ""
    settings = LeaseSettings("volcano-system", "volcano", "hung")

    async def run() -> None:
        nonlocal problem
        hung = Election(server, settings, clock, Clock(1.7e9), sleep=clock.sleep, problem=lambda: problem)
        other = candidate(server, "other", clock)
        await hung.acquire()
        assert not await other._try_acquire_or_renew()
        problem = "plugin 'x' has been running in score_nodes for 60 seconds"
        begin = clock()
        await asyncio.wait_for(hung.renew_until_lost(), 5)
        assert not hung.may_write(), "it writes nothing more"
        assert clock() - begin <= settings.retry
        await hung.release()
        assert server.holder == "hung", "it is not handed back: requests may be under way until it ends"
        await asyncio.wait_for(other.acquire(), 5)
        assert clock() - begin <= settings.duration + 2 * settings.retry

    asyncio.run(run())
    assert server.holder == "other"


def test_writes_end_before_another_replica_may_lead() -> None:
    server, clock = LeaseServer(), Clock()

    async def run() -> None:
        first = candidate(server, "one", clock)
        assert first.write_time_left() == 0.0
        await first.acquire()
        assert first.write_time_left() == 15.0
        clock.now += 9.0
        assert first.write_time_left() == 6.0
        clock.now += 1.0
        assert not first.may_write()
        assert first.write_time_left() == 0.0

    asyncio.run(run())


def test_a_leader_that_cannot_renew_stops_writing_before_another_may_begin() -> None:
    server, clock = LeaseServer(), Clock()

    async def run() -> None:
        first, second = candidate(server, "one", clock), candidate(server, "two", clock)
        await first.acquire()
        assert not await second._try_acquire_or_renew()
        writing = True
        for _ in range(200):
            clock.now += 0.1
            won = await second._try_acquire_or_renew()
            writing = first.may_write()
            if won:
                break
        assert not writing
        assert second.may_write()
        assert clock.now - 1000.0 >= 15.0
        await first.renew_until_lost()
        assert not await first._try_acquire_or_renew()

    asyncio.run(run())
    assert server.lease is not None
    assert server.lease["spec"]["leaseTransitions"] == 1


def test_a_wall_clock_that_jumps_neither_loses_nor_steals_the_lease() -> None:
    server, clock = LeaseServer(), Clock()
    walls = Clock(1.7e9), Clock(1.7e9)

    async def run() -> None:
        first, second = (candidate(server, name, clock, wall) for name, wall in zip("ab", walls, strict=True))
        await first.acquire()
        walls[0].now -= 86_400
        walls[1].now += 86_400
        for _ in range(20):
            clock.now += 2.0
            assert await first._try_acquire_or_renew()
            assert not await second._try_acquire_or_renew()
            assert first.may_write()

    asyncio.run(run())


def test_keeping_survives_a_short_outage_and_ends_with_a_long_one() -> None:
    server, clock = LeaseServer(), Clock()

    async def run() -> None:
        first = candidate(server, "one", clock)
        await first.acquire()
        server.down = True
        for _ in range(3):
            clock.now += 2.0
            assert not await first._try_acquire_or_renew()
        assert first.may_write()
        server.down = False
        assert await first._try_acquire_or_renew()
        server.down = True
        await asyncio.wait_for(first.renew_until_lost(), 5)
        assert not first.may_write()

    asyncio.run(run())


def test_a_renewal_that_comes_too_late_does_not_give_back_the_right_to_write() -> None:
    """What the writer left out in between would never be written, so another replica must take over."""
    server, clock = LeaseServer(), Clock()

    async def run() -> None:
        first = candidate(server, "one", clock)
        await first.acquire()
        clock.now += first.settings.deadline - 0.1
        assert first.may_write()

        def slowly() -> None:
            clock.now += 0.2

        server.answering = slowly
        assert not await first._try_acquire_or_renew()
        assert not first.may_write()
        await asyncio.wait_for(first.renew_until_lost(), 5)
        assert not first.may_write()

    asyncio.run(run())
    assert server.holder == "one"


def test_who_resigns_lets_the_next_one_lead_at_once() -> None:
    server, clock = LeaseServer(), Clock()

    async def run() -> None:
        first, second = candidate(server, "one", clock), candidate(server, "two", clock)
        await first.acquire()
        assert not await second._try_acquire_or_renew()
        await first.release()
        assert not first.may_write()
        assert await second._try_acquire_or_renew()
        assert server.holder == "two"

    asyncio.run(run())


def test_of_two_that_grab_at_once_one_wins() -> None:
    server, clock = LeaseServer(), Clock()

    async def run() -> None:
        candidates = [candidate(server, name, clock) for name in ("one", "two", "three")]
        won = await asyncio.gather(*(election._try_acquire_or_renew() for election in candidates))
        assert sum(won) == 1
        assert sum(election.may_write() for election in candidates) == 1

    asyncio.run(run())


@pytest.mark.parametrize("times", [(15, 15, 2), (15, 10, 9), (0, 10, 2), (15, 10, -1)])
def test_terms_that_make_no_sense_are_refused(times: tuple[float, float, float]) -> None:
    assert LeaseSettings("ns", "n", "me", *times).problem()
    assert LeaseSettings("ns", "n", "me").problem() is None
