"""The controllers of Jobs of `batch/v1` on an API server that fails now and then."""

from __future__ import annotations

import asyncio
import json
import logging
import random
import time
from collections import Counter
from typing import Any

import pytest

from stromboli.controllers.workloads.batch_job.controller import BatchJobController
from stromboli.controllers.workloads.batch_job.tracking_finalizers import TrackingFinalizerController
from stromboli.kube.request import ApiError, NoResponse, Request
from tests.controllers.in_memory_api import InMemoryApi, Manifest
from tests.controllers.running import running_controllers, wait_until, wait_until_idle
from tests.controllers.workloads.batch_job.simulated_batch_job import NOW, TEMPLATE
from tests.embedded.loop_lag import LoopLag

KINDS = (BatchJobController, TrackingFinalizerController)
TRACKING = "batch.kubernetes.io/job-tracking"
REMOVE = "$deleteFromPrimitiveList/finalizers"
TROUBLES = [NoResponse("lost"), ApiError(409, "Conflict", "changed"), ApiError(500, "InternalError", "etcd")]


class FinalizingApi(InMemoryApi):
    """Pods that are deleted stay until they have no finalizer."""

    def __init__(self) -> None:
        super().__init__()
        self.most_active = 0

    def _answer(self, request: Request) -> Any:
        *_, plural, name = request.path.split("/")
        key = (plural, "team", name)
        if request.method == "DELETE" and plural == "pods" and key in self.objects:
            stored = self.objects[key]
            if stored["metadata"].get("finalizers"):
                meta = {**stored["metadata"], "deletionTimestamp": "2026-01-01T00:00:00Z"}
                return self._store("MODIFIED", key, {**stored, "metadata": meta})
        return super()._answer(request)

    def _create(self, plural: str, namespace: str, body: Manifest) -> Manifest:
        if plural == "pods":
            body["status"] = {"phase": "Pending"}
        created = super()._create(plural, namespace, body)
        self.most_active = max(self.most_active, len(active(self)))
        return created

    def _patch(self, key: tuple[str, str, str], patch: Manifest, part: str | None) -> Manifest:
        if removed := patch.get("metadata", {}).pop(REMOVE, ()):
            left = [
                name for name in self.objects[key]["metadata"].get("finalizers", ()) if name not in removed
            ]
            patch["metadata"]["finalizers"] = left
        patched = super()._patch(key, patch, part)
        meta = patched["metadata"]
        if meta.get("deletionTimestamp") and not meta.get("finalizers"):
            self._forget(key)
        return patched


def cluster(api: FinalizingApi | None = None, **spec: Any) -> FinalizingApi:
    api = api or FinalizingApi()
    labels = {"batch.kubernetes.io/controller-uid": "uid-it"}
    body = {"template": TEMPLATE, "selector": {"matchLabels": labels}, "backoffLimit": 1000, **spec}
    api.put("jobs", {"metadata": {"name": "it", "namespace": "team"}, "spec": body})
    return api


def active(api: InMemoryApi) -> list[Manifest]:
    return [
        pod
        for pod in api.every("pods")
        if pod["status"]["phase"] == "Pending" and "deletionTimestamp" not in pod["metadata"]
    ]


def end(api: InMemoryApi, pod: Manifest, phase: str = "Succeeded") -> None:
    ended = {"exitCode": int(phase == "Failed"), "finishedAt": "2025-01-01T00:00:00Z"}
    containers = [{"name": "main", "state": {"terminated": ended}}]
    api.put("pods", {**pod, "status": {"phase": phase, "containerStatuses": containers}})


def status(api: InMemoryApi) -> Any:
    return api.find("jobs", "it", "team").get("status", {})


@pytest.mark.parametrize("seed", range(6))
def test_counts_are_exact_whatever_requests_fail_and_however_often_the_controller_starts_anew(
    seed: int, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.CRITICAL)
    chance, ends = random.Random(seed), Counter[str]()
    mode = {"completionMode": "Indexed"} if seed % 2 else {}
    api = cluster(parallelism=3, completions=12, **mode)

    def fail(request: Request) -> None:
        if request.method != "GET" and chance.random() < 0.1:
            raise chance.choice(TROUBLES)

    def lose(request: Request) -> None:
        if request.method != "GET" and chance.random() < 0.05:
            raise NoResponse("lost on the way back")

    async def life() -> None:
        api.before, api.after = fail, lose
        async with running_controllers(api, *KINDS):
            for _ in range(chance.randrange(2, 8)):
                await asyncio.sleep(0.01)
                for pod in active(api)[: chance.randrange(3)]:
                    phase = chance.choice(["Succeeded", "Succeeded", "Failed"])
                    ends[phase] += 1
                    end(api, pod, phase)

    async def scenario() -> None:
        while ends["Succeeded"] < 6:
            await life()
        api.before = api.after = lambda request: None
        async with running_controllers(api, *KINDS) as runner:
            while not status(api).get("completionTime"):
                await wait_until(lambda: bool(active(api)) or bool(status(api).get("completionTime")))
                for pod in active(api):
                    ends["Succeeded"] += 1
                    end(api, pod)
                await wait_until_idle(api, runner)

    asyncio.run(scenario())
    assert (status(api)["succeeded"], ends["Succeeded"]) == (12, 12)
    assert status(api).get("failed", 0) == ends["Failed"]
    assert api.most_active <= 3
    assert [pod for pod in api.every("pods") if pod["metadata"].get("finalizers")] == []


def test_a_pod_whose_creation_was_not_answered_is_not_made_twice() -> None:
    async def scenario() -> None:
        api, lost = cluster(parallelism=1, completions=1), list[Request]()

        def lose(request: Request) -> None:
            if request.method == "POST" and request.path.endswith("/pods") and not lost:
                lost.append(request)
                raise NoResponse("lost on the way back")

        api.after = lose
        async with running_controllers(api, *KINDS) as runner:
            await wait_until(lambda: status(api).get("active") == 1)
            await wait_until_idle(api, runner)
        assert len(lost) == 1
        assert len(api.every("pods")) == api.most_active == 1
        assert json.loads(lost[0].body or b"")["metadata"]["name"] == api.every("pods")[0]["metadata"]["name"]

    asyncio.run(scenario())


def test_pods_that_are_removed_before_anybody_sees_them_do_not_count_as_failures() -> None:
    class BlindApi(FinalizingApi):
        """Tells of no pod, as if the watch were very late."""

        async def _lines(self, plural: str, since: int, *scope: Any) -> Any:
            async for line in super()._lines(plural, since, *scope):
                if plural != "pods":
                    yield line

    async def scenario() -> None:
        api = cluster(BlindApi(), parallelism=3, completions=5)
        async with running_controllers(api, *KINDS) as runner:
            await wait_until(lambda: status(api).get("active") == 3)
            job = api.find("jobs", "it", "team")
            api.put("jobs", {**job, "spec": {**job["spec"], "parallelism": 1}})
            await wait_until(lambda: status(api).get("active") == 1)
            await wait_until_idle(api, runner)
            assert status(api).get("failed") is None
        assert len(api.every("pods")) == 1

    asyncio.run(scenario())


def test_a_deadline_holds_for_a_job_whose_pods_are_refused() -> None:
    async def scenario() -> None:
        api, start = cluster(completions=1, parallelism=1, activeDeadlineSeconds=1), time.monotonic()

        def refuse(request: Request) -> None:
            if request.method == "POST" and request.path.endswith("/pods"):
                raise ApiError(422, "Invalid", "no such pod")

        api.before = refuse
        async with running_controllers(api, *KINDS, clock=lambda: NOW + time.monotonic() - start):
            await wait_until(lambda: len(status(api).get("conditions", ())) == 2, 30)
        assert {each["reason"] for each in status(api)["conditions"]} == {"DeadlineExceeded"}
        assert ("FailedCreate", "Error creating: no such pod") in api.events

    asyncio.run(scenario())


def test_finalizers_of_pods_without_a_job_are_removed_and_others_are_left_alone() -> None:
    async def scenario() -> None:
        api = cluster(managedBy="example.com/theirs")

        def pod(name: str, kind: str, owner: str, uid: str) -> None:
            version = "batch/v1" if kind == "Job" else "apps/v1"
            reference = {"apiVersion": version, "kind": kind, "name": owner, "uid": uid, "controller": True}
            meta = {"name": name, "namespace": "team", "finalizers": [TRACKING, "example.com/mine"]}
            owners = [reference] if owner else []
            api.put("pods", {"metadata": {**meta, "ownerReferences": owners}, "status": {"phase": "Pending"}})

        pod("orphan", "Job", "", "")
        pod("of-a-job-that-is-gone", "Job", "gone", "uid-gone")
        pod("of-another-job-of-the-name", "Job", "it", "uid-before")
        pod("of-a-job", "Job", "it", "uid-it")
        pod("of-something-else", "ReplicaSet", "web", "uid-web")
        async with running_controllers(api, *KINDS) as runner:
            await wait_until_idle(api, runner)
        kept = {
            each["metadata"]["name"]
            for each in api.every("pods")
            if TRACKING in each["metadata"]["finalizers"]
        }
        assert kept == {"of-a-job", "of-something-else"}
        assert all("example.com/mine" in each["metadata"]["finalizers"] for each in api.every("pods"))

    asyncio.run(scenario())


def test_thousands_of_changes_of_pods_are_handled_by_few_syncs() -> None:
    count = 1000

    async def scenario() -> None:
        api = cluster(parallelism=count, completions=2 * count)
        async with running_controllers(api, *KINDS) as runner:
            await wait_until(lambda: status(api).get("active") == count, 60)
            await wait_until_idle(api, runner)
            before = len([request for request in api.requests if request.path.endswith("/jobs/it/status")])
            for pod in active(api):
                end(api, pod)
            async with LoopLag() as lag:
                await wait_until(lambda: status(api).get("succeeded") == count, 60)
        lag.check(f"counting the ends of {count} pods")
        written = [request for request in api.requests if request.path.endswith("/jobs/it/status")]
        assert len(written) - before < count / 20

    asyncio.run(scenario())
