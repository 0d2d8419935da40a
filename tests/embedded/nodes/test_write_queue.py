"""Writes of nodes that fail."""

import asyncio
from itertools import pairwise

from stromboli.api.durations import FOREVER, Duration
from stromboli.embedded.nodes.pod_addresses import PodAddresses
from stromboli.embedded.nodes.simulated.pod_stages import StageDelays
from stromboli.embedded.nodes.simulated.simulated_nodes import SimulatedRuntime
from stromboli.embedded.nodes.write_queue import WriteQueue
from stromboli.kube.request import ApiError
from tests.embedded.nodes.node_pods import pod


class RefusingServer:
    """An API server that refuses requests, and records their times."""

    def __init__(self, clock):
        self.clock = clock
        self.times = []

    async def send(self, request, timeout):
        self.times.append(round(self.clock(), 3))
        raise ApiError(422, "Invalid", "no")


class ForgetfulServer:
    """An API server whose events are gone when they are to be counted up."""

    def __init__(self):
        self.methods = []

    async def send(self, request, timeout):
        self.methods.append(request.method)
        if request.method == "PATCH":
            raise ApiError(404, "NotFound", "no such event")


def test_an_event_whose_predecessor_is_gone_is_created_anew():
    async def scenario():
        server = ForgetfulServer()
        writes = WriteQueue(server)
        writes.queue.start()
        for _ in range(2):
            writes.record_event(pod(), "Normal", "Started", "Started container main")
            await writes.queue.idle()
        await writes.queue.stop()
        return server.methods

    assert asyncio.run(scenario()) == ["POST", "PATCH", "POST"]


def test_an_event_that_cannot_be_made_holds_no_pod_up(monkeypatch):
    async def scenario():
        server = ForgetfulServer()
        writes = WriteQueue(server)
        monkeypatch.setattr(writes._events, "request", lambda event: 1 / 0)
        writes.queue.start()
        writes.record_event(pod(), "Normal", "Started", "Started container main")
        writes.delete_pod(pod())
        await writes.queue.idle()
        await writes.queue.stop()
        return server.methods

    assert asyncio.run(scenario()) == ["DELETE"]


def test_a_refused_stage_is_retried_with_growing_pauses():
    async def scenario():
        now = 1000.0
        server = RefusingServer(lambda: now)
        writes = WriteQueue(server, lambda: now)
        simulated = SimulatedRuntime(
            writes, PodAddresses(), StageDelays(Duration(0, 0), FOREVER), lambda: now
        )
        writes.queue.start()
        simulated.put(pod())
        for _ in range(200):
            now += 1.0
            simulated._timers._fire()
            await writes.queue.idle()
        await simulated.close()
        await writes.queue.stop()
        return server.times

    times = asyncio.run(scenario())
    pauses = [later - earlier for earlier, later in pairwise(times)]
    assert pauses == [1, 2, 4, 8, 16, 32, 60, 60]
