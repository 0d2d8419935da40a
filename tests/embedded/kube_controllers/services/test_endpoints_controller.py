"""Services with thousands of pods: endpoints come soon, and nobody else waits for them."""

from __future__ import annotations

import asyncio
from pathlib import Path

from stromboli.embedded.store.records import Key
from tests.embedded.api_requests import ApiCaller, pod, running
from tests.embedded.kube_controllers.test_controller_loop import eventually
from tests.embedded.loop_lag import LoopLag

COUNT = 5000
NODE = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}}
SERVICE = {
    "apiVersion": "v1",
    "kind": "Service",
    "metadata": {"name": "wide"},
    "spec": {"selector": {"app": "wide"}, "ports": [{"port": 80}]},
}
SLICES = "endpointslices.discovery.k8s.io"


def store_pods(api: ApiCaller, ready: bool) -> None:
    """As a node would write them, without the requests."""
    store = api.server.store
    for number in range(COUNT):
        name = f"p{number}"
        content = pod(name, nodeName="n1")
        content["metadata"] |= {"namespace": "default", "uid": name, "labels": {"app": "wide"}}
        address = f"10.64.{number // 250}.{number % 250}"
        conditions = [{"type": "Ready", "status": "True" if ready else "False"}]
        content["status"] = {"phase": "Running", "podIP": address, "conditions": conditions}
        store.put(Key("pods", "default", name), content)


def endpoints(api: ApiCaller, what: bytes) -> int:
    """How often something is in the slices as they are stored."""
    return sum(record.data.count(what) for record in api.server.store.list(SLICES))


def test_a_service_over_thousands_of_pods_does_not_hold_up_the_loop(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(tmp_path) as api:
            await api.post("/api/v1/nodes", NODE)
            await api.post("/api/v1/namespaces/default/services", SERVICE)
            store_pods(api, ready=False)
            await api.server.store.wait_committed()

            async def shown() -> bool:
                return endpoints(api, b'"targetRef"') == COUNT

            await eventually(shown, 60)
            store_pods(api, ready=True)
            await api.server.store.wait_committed()
            async with LoopLag() as lag:

                async def ready() -> bool:
                    return endpoints(api, b'"ready":true,"serving"') == COUNT

                await eventually(ready, 60)
            lag.check(f"endpoints of {COUNT} pods")
            lag.check_own(f"endpoints of {COUNT} pods")
            slices = [record for record in api.server.store.list(SLICES) if record.key.name != "kubernetes"]
            assert len(slices) == COUNT // 100
            shortened = await api.get("/api/v1/namespaces/default/endpoints/wide")
            assert len(shortened["subsets"][0]["addresses"]) == 1000
            annotations = shortened["metadata"]["annotations"]
            assert annotations["endpoints.kubernetes.io/over-capacity"] == "truncated"

    asyncio.run(scenario())
