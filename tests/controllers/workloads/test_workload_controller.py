"""What the controllers of all workloads share: rests, failures, and what they remember of owners."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest

from stromboli.controllers import reconciler
from stromboli.controllers.workloads.replicaset.controller import ReplicaSetController
from stromboli.controllers.workloads.replicaset.reconcile import Owner, Scale
from stromboli.kube.request import ApiError, NoResponse, Request
from tests.controllers.in_memory_api import InMemoryApi
from tests.controllers.running import running_controllers, wait_until, wait_until_idle
from tests.controllers.workloads.workload_objects import LABELS, TEMPLATE, pod

KEY = "team/web"


def cluster(replicas: int = 1, **spec: Any) -> InMemoryApi:
    api = InMemoryApi()
    base = {"replicas": replicas, "selector": {"matchLabels": LABELS}, "template": TEMPLATE}
    metadata = {"name": "web", "namespace": "team", "generation": 1}
    api.put("replicasets", {"metadata": metadata, "spec": {**base, **spec}})
    return api


def test_an_owner_that_rests_after_a_failure_waits_longer_each_time(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("CRITICAL")
    monkeypatch.setattr(reconciler.Reconciler, "rest_factor", 0.0)
    monkeypatch.setattr(reconciler, "REFUSAL_PAUSE", 0.0)
    api = cluster()

    def refuse(request: Request) -> None:
        if request.method == "POST" and request.path.endswith("/pods"):
            raise ApiError(403, "Forbidden", "exceeded quota")

    api.before = refuse

    async def scenario() -> None:
        async with running_controllers(api, ReplicaSetController) as runner:
            (controller,) = runner.controllers
            assert isinstance(controller, ReplicaSetController)
            failures: list[int] = []
            rests: list[float] = []
            failed, pause_before = controller._failed, controller.pause_before

            def failed_and_rests(key: str, error: Exception, unexpected: bool = False) -> None:
                failed(key, error, unexpected)
                failures.append(controller.queue.num_requeues(key))
                controller.rests_until[key] = time.monotonic() + 0.5

            def noted_pause(key: str) -> float:
                rests.append(pause_before(key))
                return rests[-1]

            monkeypatch.setattr(controller, "_failed", failed_and_rests)
            monkeypatch.setattr(controller, "pause_before", noted_pause)
            await wait_until(lambda: len(failures) >= 3)
            assert any(rests), "it rested"
            assert failures == list(range(failures[0], failures[0] + len(failures)))

    asyncio.run(scenario())


def test_nothing_is_remembered_of_an_owner_that_goes_during_its_sync() -> None:
    api = cluster()

    class SlowController(ReplicaSetController):
        async def _scale(self, owner: Owner, scale: Scale) -> ApiError | NoResponse | None:
            """The set goes before its pod is created, which the store never shows."""
            api.remove("replicasets", "web", "team")
            await wait_until(lambda: self.owners.get(KEY) is None)
            self.pods.created(owner, pod("new"))
            return None

    async def scenario() -> None:
        async with running_controllers(api, SlowController) as runner:
            (controller,) = runner.controllers
            assert isinstance(controller, SlowController)
            await wait_until(lambda: not api.every("replicasets"))
            await wait_until_idle(api, runner)
            assert KEY not in controller.rests_until
            assert not controller.pods._pending

    asyncio.run(scenario())


def test_a_pod_of_another_namespace_does_not_count_whatever_owner_it_claims() -> None:
    api = cluster()
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "uid-web"}
    metadata = {
        "name": "forged",
        "namespace": "other",
        "labels": LABELS,
        "ownerReferences": [{**owner, "controller": True}],
    }
    api.put("pods", {"metadata": metadata, "status": {"phase": "Running"}})

    async def scenario() -> None:
        async with running_controllers(api, ReplicaSetController) as runner:
            await wait_until(lambda: "status" in api.find("replicasets", "web", "team"))
            await wait_until_idle(api, runner)

    asyncio.run(scenario())
    assert sorted(each["metadata"]["namespace"] for each in api.every("pods")) == ["other", "team"]


SELECTORS: list[Any] = [
    {"matchLabels": {"app": "web"}},
    {"matchLabels": {"app": "web", "also": "this"}},
    {"matchExpressions": [{"key": "app", "operator": "In", "values": ["web", "other"]}]},
    {"matchLabels": {"also": "this"}, "matchExpressions": [{"key": "app", "operator": "Exists"}]},
]


@pytest.mark.parametrize("selector", SELECTORS)
def test_an_orphan_that_comes_later_is_adopted_however_it_is_selected(selector: Any) -> None:
    labels = {"app": "web", "also": "this"}
    template = {**TEMPLATE, "metadata": {"labels": labels}}
    api = cluster(0, selector=selector, template=template)

    async def scenario() -> None:
        async with running_controllers(api, ReplicaSetController) as runner:
            await wait_until(lambda: "status" in api.find("replicasets", "web", "team"))
            await wait_until_idle(api, runner)
            for name, its_labels in (("adopted", labels), ("left", {"app": "none", "also": "this"})):
                api.put("pods", {"metadata": {"name": name, "namespace": "team", "labels": its_labels}})
            await wait_until_idle(api, runner)

    asyncio.run(scenario())
    left = [each["metadata"]["name"] for each in api.every("pods")]
    assert left == (["left"] if selector != SELECTORS[3] else [])
