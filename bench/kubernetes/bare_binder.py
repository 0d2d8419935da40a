"""A bare binder: it watches pods as our scheduler does, decides nothing, and binds all of them in turn.

What it reaches is what an API server, our client and the echo of each bind leave to a scheduler in Python:
`python -m bench.kubernetes.bare_binder KUBECONFIG NODES`.
"""

from __future__ import annotations

import asyncio
import sys
from collections import deque

from stromboli.api.types.meta import Object
from stromboli.api.types.pod import Pod
from stromboli.engine.decisions import Bind
from stromboli.kube.api_client import Client
from stromboli.kube.api_resources import RESOURCES
from stromboli.kube.cluster_access import find_access
from stromboli.kube.reflector import Reflector, UnusableObject
from stromboli.scheduler.options import Options
from stromboli.scheduler.writes.decision_requests import binding


class WaitingPods:
    """The sink of the watch: pods without a node, as they come."""

    def __init__(self) -> None:
        self.pods: deque[Object] = deque()

    def put(self, object: Object, new: bool) -> None:
        if isinstance(object, Pod) and not object.spec.node_name:
            self.pods.append(object)

    def drop(self, object: Object) -> None:
        """A pod that is gone cannot be bound, and nobody deletes any here."""

    def unusable(self, problem: UnusableObject) -> None:
        raise SystemExit(f"{problem.kind} {problem.namespace}/{problem.name}: {problem.text}")

    async def wait_for_room(self) -> None:
        await asyncio.sleep(0)


async def bind_all(kubeconfig: str, nodes: int) -> None:
    """Bind every pod that is there, as many at a time as the scheduler does, then watch on."""
    waiting = WaitingPods()
    async with Client(find_access(kubeconfig)) as client:
        reflector = Reflector(client, RESOURCES[Pod], Pod, waiting)
        watching = asyncio.create_task(reflector.run())
        await reflector.synced.wait()
        numbers = iter(range(len(waiting.pods)))

        async def worker() -> None:
            for number in numbers:
                pod = waiting.pods[number]
                node = f"node-{number % nodes}"
                await client.send(binding(Bind(pod.namespace, pod.name, pod.metadata.uid, node, "")))

        await asyncio.gather(*(worker() for _ in range(Options().writes_in_flight)))
        await watching


if __name__ == "__main__":
    asyncio.run(bind_all(sys.argv[1], int(sys.argv[2])))
