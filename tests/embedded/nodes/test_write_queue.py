"""Writes that the server refuses are retried with backoff."""

import asyncio
from itertools import pairwise

from stromboli.embedded.nodes.durations import FOREVER, Duration
from stromboli.embedded.nodes.pod_addresses import PodAddresses
from stromboli.embedded.nodes.pod_stages import StageDelays
from stromboli.embedded.nodes.simulated_nodes import SimulatedRuntime
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


def test_a_refused_stage_is_retried_with_growing_pauses():
    async def story():
        now = 1000.0
        server = RefusingServer(lambda: now)
        writes = WriteQueue(server, lambda: now)
        simulated = SimulatedRuntime(
            writes, PodAddresses(), StageDelays(Duration(0, 0), FOREVER), lambda: now
        )
        writes.start()
        simulated.put(pod())
        for _ in range(200):
            now += 1.0
            simulated._timers._fire()
            await writes.idle()
        await simulated.close()
        await writes.stop()
        return server.times

    times = asyncio.run(story())
    pauses = [later - earlier for earlier, later in pairwise(times)]
    assert pauses == [1, 2, 4, 8, 16, 32, 60, 60]
