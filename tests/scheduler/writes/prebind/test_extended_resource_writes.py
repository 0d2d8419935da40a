"""Extended resources that devices stand for: a claim is made before the bind, and deleted if that fails."""

from __future__ import annotations

import pytest

from stromboli.api.types.devices import (
    AllocatedDevice,
    AllocatedDevices,
    AllocationResult,
    ConsumerReference,
    DeviceRequest,
    ExactDeviceRequest,
)
from stromboli.api.types.pod import ContainerExtendedResourceRequest
from stromboli.kube.request import Backoff, NoResponse
from stromboli.model.devices.claim_use import ExtendedResourceGrant
from stromboli.model.volumes.volume_grant import VolumeGrant
from stromboli.scheduler.writes import decision_writer as writing
from stromboli.scheduler.writes.prebind.claim_writes import claim_name
from tests.scheduler.writes.prebind.gang_story import DEVICE_CLAIMS, PODS, GangStory

GRANT = ExtendedResourceGrant(
    "ns",
    ConsumerReference("", "pods", "web-0", "uid of web-0"),
    (DeviceRequest("container-0-request-0", ExactDeviceRequest("gpu", count=2)),),
    (ContainerExtendedResourceRequest("main", "example.com/gpu", "container-0-request-0"),),
    AllocationResult(
        AllocatedDevices((AllocatedDevice("container-0-request-0", "gpu.example.com", "n1", "g0"),))
    ),
)
NAME = claim_name("web-0", "uid of web-0")


@pytest.fixture(autouse=True)
def hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writing, "BACKOFF", Backoff(first=0.001, longest=0.004))


def claims(story: GangStory) -> list[str]:
    return [
        path.removeprefix(f"{DEVICE_CLAIMS}/") for path in story.api.objects if path.startswith(DEVICE_CLAIMS)
    ]


def test_a_claim_is_made_allocated_and_told_to_the_pod() -> None:
    story = GangStory((GRANT,)).run()
    assert claims(story) == [NAME]
    assert NAME.startswith("web-0-extended-resources-")
    claim = story.get(f"{DEVICE_CLAIMS}/{NAME}")
    assert claim["metadata"]["annotations"] == {"resource.kubernetes.io/extended-resource-claim": "true"}
    assert claim["metadata"]["ownerReferences"][0]["uid"] == "uid of web-0"
    assert claim["spec"]["devices"]["requests"][0]["exactly"] == {"deviceClassName": "gpu", "count": 2}
    assert claim["status"]["reservedFor"][0]["name"] == "web-0"
    pod = story.get(f"{PODS}/web-0")
    assert pod["status"]["extendedResourceClaimStatus"] == {
        "requestMappings": [
            {
                "containerName": "main",
                "resourceName": "example.com/gpu",
                "requestName": "container-0-request-0",
            }
        ],
        "resourceClaimName": NAME,
    }
    assert story.nodes() == ["n1"]


def test_a_lost_answer_never_leaves_two_claims() -> None:
    story = GangStory((GRANT,))
    losses = [NoResponse("the connection broke")]
    story.api.lose = lambda request: losses.pop() if request.method == "POST" and losses else None
    story.run()
    assert claims(story) == [NAME]
    assert story.nodes() == ["n1"]


def test_the_claim_of_a_pod_that_is_not_bound_after_all_is_deleted() -> None:
    story = GangStory((GRANT,), (VolumeGrant("ns", "gone", "u"),)).run()
    assert len(story.failures) == 2
    assert claims(story) == []
    assert not story.get(f"{PODS}/web-0")["status"]


def test_a_claim_of_that_name_that_is_not_the_pods_is_left_alone() -> None:
    story = GangStory((GRANT,))
    story.api.put(f"{DEVICE_CLAIMS}/{NAME}", {"spec": {}})
    story.run()
    (failure,) = story.failures
    assert failure.why == f"allocating devices: resourceclaim ns/{NAME} belongs to another pod"
    assert claims(story) == [NAME]


def test_a_pod_with_a_long_name_gets_a_claim_too() -> None:
    assert len(claim_name("a" * 253, "uid")) == 253
