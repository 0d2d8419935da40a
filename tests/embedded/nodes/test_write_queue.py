"""A step that the server refuses is tried again, ever more rarely."""

import asyncio
from itertools import pairwise

from stromboli.embedded.nodes.durations import FOREVER, Duration
from stromboli.embedded.nodes.pod_addresses import PodAddresses
from stromboli.embedded.nodes.pod_stages import StageDelays
from stromboli.embedded.nodes.simulated_nodes import SimulatedRuntime
from stromboli.embedded.nodes.write_queue import WriteQueue
from stromboli.kube.request import ApiError
from tests.embedded.nodes.node_pods import pod


class Refusing:
    """An API server that says no, and remembers when it was asked."""

    def __init__(self, clock):
        self.clock = clock
        self.asked = []

    async def send(self, request, timeout):
        self.asked.append(round(self.clock(), 3))
        raise ApiError(422, "Invalid", "no")


def test_a_step_that_is_refused_is_tried_ever_more_rarely():
    async def story():
        now = 1000.0
        server = Refusing(lambda: now)
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
        return server.asked

    asked = asyncio.run(story())
    pauses = [later - earlier for earlier, later in pairwise(asked)]
    assert pauses == [1, 2, 4, 8, 16, 32, 60, 60]
