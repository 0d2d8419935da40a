"""The DaemonSet controller: revisions that it finds, and many nodes."""

from __future__ import annotations

import asyncio
from typing import Any

from stromboli.controllers.workloads.daemonset.controller import DaemonSetController
from tests.controllers.in_memory_api import InMemoryApi
from tests.controllers.running import names, running_controllers, wait_until, wait_until_idle
from tests.controllers.workloads.workload_objects import TEMPLATE
from tests.embedded.loop_lag import LoopLag

LABELS = {"app": "web"}
REVISION = "controller-revision-hash"
OWNER = {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "web", "uid": "uid-web", "controller": True}


def cluster(nodes: int, **spec: Any) -> InMemoryApi:
    api = InMemoryApi()
    for number in range(nodes):
        api.put("nodes", {"metadata": {"name": f"n{number}", "labels": {"zone": "a"}}})
    base = {"selector": {"matchLabels": LABELS}, "template": TEMPLATE}
    metadata = {"name": "web", "namespace": "team", "generation": 1}
    api.put("daemonsets", {"metadata": metadata, "spec": {**base, **spec}})
    return api


def status(api: InMemoryApi) -> Any:
    return api.find("daemonsets", "web", "team").get("status", {})


def revision(name: str, number: int, **labels: str) -> Any:
    metadata = {
        "name": name,
        "namespace": "team",
        "labels": {**LABELS, **labels},
        "ownerReferences": [OWNER],
    }
    data = {"spec": {"template": {**TEMPLATE, "$patch": "replace"}}}
    return {"metadata": metadata, "data": data, "revision": number}


def test_of_equal_revisions_the_newest_stays_with_the_pods_of_all() -> None:
    async def scenario() -> None:
        api = cluster(1)
        api.put("controllerrevisions", revision("web-one", 1, **{REVISION: "one"}))
        api.put("controllerrevisions", revision("web-two", 2))
        labels = {**LABELS, REVISION: "one"}
        pod = {
            "metadata": {"name": "p", "namespace": "team", "labels": labels, "ownerReferences": [OWNER]},
            "spec": {"nodeName": "n0"},
            "status": {"phase": "Running"},
        }
        api.put("pods", pod)
        async with running_controllers(api, DaemonSetController) as runner:
            await wait_until(lambda: status(api).get("updatedNumberScheduled") == 1)
            await wait_until_idle(api, runner)
        assert names(api.every("controllerrevisions")) == ["web-two"]
        assert api.find("controllerrevisions", "web-two", "team")["metadata"]["labels"][REVISION] == "web-two"
        (kept,) = api.every("pods")
        assert (kept["metadata"]["name"], kept["metadata"]["labels"][REVISION]) == ("p", "web-two")

    asyncio.run(scenario())


def test_a_template_that_makes_no_sense_is_told() -> None:
    async def scenario() -> None:
        template = {**TEMPLATE, "spec": {**TEMPLATE["spec"], "nodeSelector": 5}}
        api = cluster(1, template=template)
        async with running_controllers(api, DaemonSetController):
            await wait_until(lambda: bool(api.events))
            assert api.events[0][0] == "FailedCreate"
            assert "spec.template.spec" in api.events[0][1]
            api.put("nodes", {"metadata": {"name": "later"}})
        assert not api.every("pods")

    asyncio.run(scenario())


def test_a_thousand_nodes_do_not_keep_the_loop_busy() -> None:
    async def scenario() -> None:
        api = cluster(1000)
        async with LoopLag() as lag, running_controllers(api, DaemonSetController) as runner:
            await wait_until(lambda: status(api).get("currentNumberScheduled") == 1000, 60)
            await wait_until_idle(api, runner, 60)
        lag.check("a DaemonSet on a thousand nodes")
        syncs = sum(request.path.endswith("/status") for request in api.writes)
        assert syncs < 200, "syncs are to handle many changes at once"

    asyncio.run(scenario())
