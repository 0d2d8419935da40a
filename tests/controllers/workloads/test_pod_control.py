"""How many pods are created at a time."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from stromboli.controllers.workloads.pod_control import FULL_BATCH, HUGE_POD
from stromboli.controllers.workloads.replicaset.controller import ReplicaSetController
from stromboli.kube.request import Request
from tests.controllers.in_memory_api import InMemoryApi
from tests.controllers.running import running_controllers, wait_until
from tests.controllers.workloads.workload_objects import LABELS, TEMPLATE


class SlowApi(InMemoryApi):
    """Answers a moment later, and counts the pods that are being created."""

    creating = most = 0

    async def send(self, request: Request, timeout: float = 30.0) -> bytes:
        is_new_pod = request.method == "POST" and request.path.endswith("/pods")
        self.creating += is_new_pod
        self.most = max(self.most, self.creating)
        await asyncio.sleep(0)
        try:
            return await super().send(request, timeout)
        finally:
            self.creating -= is_new_pod


@pytest.mark.parametrize(("size", "at_a_time"), [(10, FULL_BATCH), (HUGE_POD, 1)])
def test_large_pods_are_created_one_at_a_time(size: int, at_a_time: int) -> None:
    api = SlowApi()
    container: Any = {"name": "main", "image": "one", "env": [{"name": "LARGE", "value": "x" * size}]}
    template = {**TEMPLATE, "spec": {"containers": [container]}}
    spec = {"replicas": 40, "selector": {"matchLabels": LABELS}, "template": template}
    api.put("replicasets", {"metadata": {"name": "web", "namespace": "team", "generation": 1}, "spec": spec})

    async def scenario() -> None:
        async with running_controllers(api, ReplicaSetController):
            await wait_until(lambda: len(api.every("pods")) == 40)

    asyncio.run(scenario())
    assert api.most == at_a_time
