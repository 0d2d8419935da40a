"""The consistency check looks at what the ledgers count: devices of claims, and promises to claims."""

from __future__ import annotations

from typing import Any

from stromboli.model.cluster import Cluster
from stromboli.model.intake.object_intake import Intake
from stromboli.model.status import Status
from stromboli.model.volumes.volume_grant import VolumeGrant
from stromboli.scheduler.mirror.consistency import compare
from tests.manifests import decoded, group, node, pod, queue

RESULT = {"request": "gpu", "driver": "gpu.example.com", "pool": "n1", "device": "g0"}
USER = {"resource": "pods", "name": "web-0", "uid": "default/web-0"}


def claim(allocated: bool) -> dict[str, Any]:
    status = {"allocation": {"devices": {"results": [RESULT]}}, "reservedFor": [USER]} if allocated else {}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": "c0", "namespace": "default", "uid": "c0"},
        "spec": {"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpu"}}]}},
        "status": status,
    }


def volume_claim() -> dict[str, Any]:
    metadata = {"name": "data", "namespace": "default", "uid": "data"}
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata, "spec": {}}


def cluster(*more: dict[str, Any], on: str = "n1") -> Cluster:
    intake = Intake()
    volumes = [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]
    web = pod("web-0", "web", on=on, spec={"volumes": volumes})
    for manifest in (queue(), node("n1"), group("web", 1), web, volume_claim(), *more):
        intake.put(decoded(manifest))
    intake.cluster.settle()
    return intake.cluster


def test_devices_that_are_counted_wrongly_are_reported() -> None:
    live = cluster(claim(allocated=True))
    assert compare(live, cluster(claim(allocated=True))) == []
    live.devices.claims["default/c0"].counted = None
    [difference] = compare(live, cluster(claim(allocated=True)))
    assert str(difference) == (
        "ResourceClaim default/c0 devices: holds []; on the API server: holds ['gpu.example.com/n1/g0']"
    )


def test_a_promise_that_nobody_needs_is_reported() -> None:
    live = cluster()
    (task,) = live.tasks.values()
    live.leave(task)
    task.grants = (VolumeGrant("default", "data", "data"),)
    live.enter(task)
    assert [difference.key for difference in compare(live, cluster())] == ["default/data promise"]


def test_what_a_pod_that_is_being_bound_was_granted_is_no_difference() -> None:
    live = cluster(on="")
    (task,) = live.tasks.values()
    live.move(task, Status.BINDING, live.nodes["n1"], (VolumeGrant("default", "data", "data"),))
    assert live.volumes.promise_to("default/data") is not None
    assert compare(live, cluster(on="")) == []
