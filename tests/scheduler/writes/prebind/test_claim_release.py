"""Releasing claims that nobody uses, and never one that somebody does."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from stromboli.engine.decisions import ReleaseClaim
from stromboli.kube.event_recorder import EventRecorder
from stromboli.scheduler.writes.decision_writer import DecisionWriter
from stromboli.scheduler.writes.write_orders import WriteOrder
from tests.scheduler.writes.prebind.gang_story import DEVICE_CLAIMS, PODS
from tests.scheduler.writes.prebind.stored_objects import StoredObjects

POD = {"resource": "pods", "name": "web-0", "uid": "uid of web-0"}
PATH = f"{DEVICE_CLAIMS}/c0"


def allocated(reserved: list[Any]) -> StoredObjects:
    api = StoredObjects()
    metadata = {"finalizers": ["mine", "resource.kubernetes.io/delete-protection"]}
    status = {"allocation": {"devices": {}}, "reservedFor": reserved, "devices": [{}]}
    api.put(PATH, {"metadata": metadata, "spec": {}, "status": status})
    return api


def release(api: StoredObjects, delete: bool = False, version: str = "") -> StoredObjects:
    seen = version or api.objects[PATH]["metadata"]["resourceVersion"]
    decision = ReleaseClaim("ns", "c0", "uid of c0", seen, delete)

    async def run() -> None:
        writer = DecisionWriter(api, EventRecorder("v", "t", lambda: 0.0), lambda: 60.0, lambda _: None)
        writer.outbox.submit([WriteOrder(decision)])
        writer.start()
        assert await writer.finish(5.0)

    asyncio.run(run())
    return api


@pytest.mark.parametrize("pod", ["gone", "pending", "another", "finished", "none"])
def test_a_claim_that_nobody_uses_is_released(pod: str) -> None:
    api = allocated([] if pod == "none" else [POD])
    if pod not in ("gone", "none"):
        finished = pod == "finished"
        spec = {"nodeName": "n1"} if pod in ("another", "finished") else {}
        api.put(f"{PODS}/web-0", {"spec": spec, "status": {"phase": "Succeeded" if finished else "Pending"}})
    if pod == "another":
        api.objects[f"{PODS}/web-0"]["metadata"]["uid"] = "other"
    release(api)
    assert not any(api.objects[PATH]["status"].values())
    assert api.objects[PATH]["metadata"]["finalizers"] == ["mine"]


def test_a_claim_of_a_pod_that_runs_stays() -> None:
    api = allocated([POD])
    api.put(f"{PODS}/web-0", {"spec": {"nodeName": "n1"}, "status": {"phase": "Running"}})
    release(api)
    assert api.objects[PATH]["status"]["reservedFor"] == [POD]


def test_a_claim_that_has_changed_since_stays() -> None:
    api = release(allocated([]), version="0")
    assert "allocation" in api.objects[PATH]["status"]
    assert not api.writes


def test_a_claim_that_was_made_for_one_attempt_is_deleted() -> None:
    assert PATH not in release(allocated([]), delete=True).objects
    api = StoredObjects()
    assert not release(api, delete=True, version="1").writes
