"""The StatefulSet controller where the API server does not do as it wants."""

from __future__ import annotations

import asyncio
from typing import Any

from stromboli.controllers.workloads.statefulset.controller import StatefulSetController
from stromboli.kube.request import ApiError, Request
from tests.controllers.in_memory_api import InMemoryApi
from tests.controllers.running import names, running_controllers, wait_until, wait_until_idle
from tests.controllers.workloads.workload_objects import TEMPLATE

LABELS = {"app": "web"}
CLAIMS = [{"metadata": {"name": "data"}, "spec": {}}]


def cluster(**spec: Any) -> InMemoryApi:
    api = InMemoryApi()
    base = {
        "replicas": 2,
        "selector": {"matchLabels": LABELS},
        "template": TEMPLATE,
        "podManagementPolicy": "Parallel",
    }
    metadata = {"name": "web", "namespace": "team", "generation": 1}
    api.put("statefulsets", {"metadata": metadata, "spec": {**base, **spec}})
    return api


def status(api: InMemoryApi) -> Any:
    return api.find("statefulsets", "web", "team").get("status", {})


def test_a_revision_whose_name_is_taken_gets_another() -> None:
    async def scenario() -> None:
        api = cluster()
        async with running_controllers(api, StatefulSetController) as runner:
            await wait_until_idle(api, runner)
        (first,) = api.every("controllerrevisions")
        taken = first["metadata"]["name"]
        api = cluster()
        foreign = {"metadata": {"name": taken, "namespace": "team"}, "data": {"other": True}, "revision": 1}
        api.put("controllerrevisions", foreign)
        async with running_controllers(api, StatefulSetController) as runner:
            await wait_until(lambda: status(api).get("replicas") == 2)
            await wait_until_idle(api, runner)
        assert status(api)["collisionCount"] == 1
        assert len(names(api.every("controllerrevisions"))) == 2
        assert status(api)["updateRevision"] != taken

    asyncio.run(scenario())


def test_a_claim_that_is_refused_is_told_and_its_pod_waits() -> None:
    async def scenario() -> None:
        api = cluster(volumeClaimTemplates=CLAIMS)

        def refuse(request: Request) -> None:
            if (
                request.method == "POST"
                and b"data-web-0" in (request.body or b"")
                and "claims" in request.path
            ):
                raise ApiError(403, "Forbidden", "exceeded quota")

        api.before = refuse
        async with running_controllers(api, StatefulSetController):
            await wait_until(lambda: len(api.events) >= 2 and status(api).get("replicas") == 0)
            assert not api.every("pods")
            api.before = lambda request: None
            await wait_until(lambda: names(api.every("pods")) == ["web-0", "web-1"])
        assert api.events[:2] == [
            (
                "FailedCreate",
                "Create Claim data-web-0 for Pod web-0 in StatefulSet web failed error: exceeded quota",
            ),
            ("FailedCreate", "Create Pod web-0 in StatefulSet web failed error: exceeded quota"),
        ]

    asyncio.run(scenario())


def test_a_pod_of_somebody_else_with_the_name_stays_and_is_waited_for() -> None:
    async def scenario() -> None:
        api = cluster()
        owner = {"apiVersion": "v1", "kind": "Thing", "name": "x", "uid": "x", "controller": True}
        metadata = {"name": "web-0", "namespace": "team", "labels": LABELS, "ownerReferences": [owner]}
        foreign = api.put("pods", {"metadata": metadata, "status": {"phase": "Running"}})
        async with running_controllers(api, StatefulSetController):
            await wait_until(lambda: names(api.every("pods")) == ["web-0", "web-1"])
            assert api.find("pods", "web-0", "team")["metadata"]["uid"] == foreign["metadata"]["uid"]
            api.remove("pods", "web-0", "team")
            await wait_until(lambda: ("pods", "team", "web-0") in api.objects)

    asyncio.run(scenario())


def test_answers_that_are_lost_make_no_pod_or_event_twice() -> None:
    async def scenario() -> None:
        api = cluster(volumeClaimTemplates=CLAIMS)
        lost: set[str] = set()

        def lose(request: Request) -> None:
            kind = f"{request.method} {request.path}"
            if request.method in ("POST", "PATCH") and "/events" not in request.path and kind not in lost:
                lost.add(kind)
                raise ApiError(500, "InternalError", "the answer was lost")

        api.after = lose
        async with running_controllers(api, StatefulSetController) as runner:
            await wait_until(lambda: status(api).get("replicas") == 2)
            await wait_until_idle(api, runner)
        assert names(api.every("pods")) == ["web-0", "web-1"]
        assert names(api.every("persistentvolumeclaims")) == ["data-web-0", "data-web-1"]
        assert len(api.every("controllerrevisions")) == 1
        assert len(set(api.events)) == len(api.events)

    asyncio.run(scenario())
