"""Requests are sent only while we lead, and end before another replica can."""

from __future__ import annotations

import asyncio

import pytest

from stromboli.kube.guarded_client import GuardedClient, LeaseLost
from stromboli.kube.request import Request, RequestWithdrawn
from tests.kube.fake_api import FakeApi


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
