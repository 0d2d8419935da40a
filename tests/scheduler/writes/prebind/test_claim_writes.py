"""ResourceClaims before a bind: allocated and reserved, fought over, waited for, and taken back."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from stromboli.api.go_scalars import timestamp
from stromboli.api.types.devices import (
    AllocatedConfiguration,
    AllocatedDevice,
    AllocatedDevices,
    AllocationResult,
    ConsumerReference,
    OpaqueConfiguration,
)
from stromboli.kube.request import ApiError, Backoff, NoResponse, Request
from stromboli.model.devices.claim_use import ClaimGrant
from stromboli.model.volumes.volume_grant import VolumeGrant
from stromboli.scheduler.writes import decision_writer as writing
from tests.scheduler.writes.prebind.gang_story import DEVICE_CLAIMS, NOW, PODS, GangStory

FINALIZER = "resource.kubernetes.io/delete-protection"


@pytest.fixture(autouse=True)
def hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writing, "BACKOFF", Backoff(first=0.001, longest=0.004))


def devices(*names: str, **fields: Any) -> AllocationResult:
    results = tuple(AllocatedDevice("gpu", "gpu.example.com", "n1", name, **fields) for name in names)
    return AllocationResult(AllocatedDevices(results))


def grant(claim: str, pod: str, allocation: AllocationResult | None) -> ClaimGrant:
    consumer = ConsumerReference("", "pods", pod, f"uid of {pod}")
    return ClaimGrant("ns", claim, f"uid of {claim}", consumer, allocation)


def put(story: GangStory, claim: str, **status: Any) -> None:
    story.api.put(f"{DEVICE_CLAIMS}/{claim}", {"spec": {}, "status": status})


def written(device: str) -> dict[str, Any]:
    result = {"request": "gpu", "driver": "gpu.example.com", "pool": "n1", "device": device}
    return {"devices": {"results": [result]}}


def two_claims() -> GangStory:
    story = GangStory((grant("c0", "web-0", devices("g0")),), (grant("c1", "web-1", devices("g1")),))
    put(story, "c0")
    put(story, "c1")
    return story


def claim(story: GangStory, name: str) -> dict[str, Any]:
    return story.get(f"{DEVICE_CLAIMS}/{name}")


def is_free(story: GangStory, name: str) -> bool:
    stored = claim(story, name)
    return not stored["status"] and not stored["metadata"].get("finalizers")


def whys(story: GangStory) -> set[tuple[str, str]]:
    return {(failure.unprepared, failure.why) for failure in story.failures}


def test_a_claim_is_allocated_and_reserved_before_its_pod_is_bound() -> None:
    story = two_claims().run()
    assert story.nodes() == ["n1", "n1"]
    assert claim(story, "c0")["metadata"]["finalizers"] == [FINALIZER]
    assert claim(story, "c0")["status"] == {
        "allocation": {**written("g0"), "allocationTimestamp": timestamp(NOW)},
        "reservedFor": [{"resource": "pods", "name": "web-0", "uid": "uid of web-0"}],
    }
    *before, first, second = [path for _, path in story.api.writes]
    assert {first, second} == {"pods/web-0/binding", "pods/web-1/binding"}
    assert len(before) == 4


def test_what_is_written_already_is_not_written_again() -> None:
    """As after a restart between the claims and the binds."""
    story = two_claims()
    for number in range(2):
        pod = {"resource": "pods", "name": f"web-{number}", "uid": f"uid of web-{number}"}
        put(story, f"c{number}", allocation=written(f"g{number}"), reservedFor=[pod])
    story.run()
    assert story.nodes() == ["n1", "n1"]
    assert all(path.endswith("binding") for _, path in story.api.writes)


def test_pods_of_a_gang_that_share_a_claim_are_reserved_by_one_write() -> None:
    pods = [f"web-{number}" for number in range(30)]
    story = GangStory(*((grant("c0", pod, devices("g0")),) for pod in pods))
    put(story, "c0")
    story.run(workers=4)
    assert all(story.nodes())
    assert {consumer["name"] for consumer in claim(story, "c0")["status"]["reservedFor"]} == set(pods)
    assert len([path for _, path in story.api.writes if not path.endswith("binding")]) <= 8


def test_a_pod_that_joins_an_allocated_claim_is_entered_beside_the_others() -> None:
    story = GangStory((grant("c0", "web-0", None),))
    other = {"resource": "pods", "name": "other", "uid": "u9"}
    put(story, "c0", allocation=written("g0"), reservedFor=[other])
    story.run()
    assert [consumer["name"] for consumer in claim(story, "c0")["status"]["reservedFor"]] == [
        "other",
        "web-0",
    ]
    assert claim(story, "c0")["status"]["allocation"] == written("g0")


@pytest.mark.parametrize("how", ["refused", "lost"])
def test_failing_status_writes_are_tried_again(how: str) -> None:
    story = two_claims()
    errors = [
        ApiError(500, "", "etcd is on fire") if how == "refused" else NoResponse("the connection broke")
    ] * 4

    def fail(request: Request) -> Exception | None:
        return errors.pop() if request.method == "PATCH" and errors else None

    setattr(story.api, "refuse" if how == "refused" else "lose", fail)
    story.run()
    assert story.nodes() == ["n1", "n1"]
    assert len(claim(story, "c0")["status"]["reservedFor"]) == 1


def test_status_writes_that_always_fail_undo_the_gang() -> None:
    story = two_claims()
    broken = True

    def fail(request: Request) -> Exception | None:
        nonlocal broken
        if broken and request.path == f"{DEVICE_CLAIMS}/c1/status":
            story.seconds += 11.0
            broken = story.seconds < 60
            return ApiError(500, "", "etcd is on fire")
        return None

    story.api.refuse = fail
    story.run()
    assert story.nodes() == ["", ""]
    assert whys(story) == {("ns/web-1", "allocating devices: etcd is on fire")}
    assert is_free(story, "c0")
    assert is_free(story, "c1")


def test_a_claim_that_another_scheduler_allocated_meanwhile_undoes_the_gang_whole() -> None:
    story = two_claims()
    put(story, "c1", allocation=written("g7"))
    story.run()
    assert story.nodes() == ["", ""]
    assert whys(story) == {
        ("ns/web-1", "allocating devices: resourceclaim ns/c1 was allocated elsewhere meanwhile")
    }
    assert is_free(story, "c0")
    assert claim(story, "c1")["status"] == {"allocation": written("g7")}


def test_of_two_schedulers_that_write_at_once_one_wins() -> None:
    story = two_claims()
    raced = False

    def race(request: Request) -> Exception | None:
        nonlocal raced
        if request.path == f"{DEVICE_CLAIMS}/c1/status" and not raced:
            raced = True
            story.api.change(f"{DEVICE_CLAIMS}/c1", {"status": {"allocation": written("g7")}})
        return None

    story.api.refuse = race
    story.run()
    assert story.nodes() == ["", ""]
    assert claim(story, "c1")["status"] == {"allocation": written("g7")}
    assert is_free(story, "c0")


REFUSALS = {
    "gone": "resourceclaim ns/c0 is gone",
    "another": "resourceclaim ns/c0 is gone",
    "deleted": "resourceclaim ns/c0 is being deleted",
    "deallocated": "resourceclaim ns/c0 is no longer allocated",
}


@pytest.mark.parametrize("what", REFUSALS)
def test_a_claim_that_cannot_be_used_undoes_the_gang(what: str) -> None:
    story = GangStory((grant("c0", "web-0", None if what == "deallocated" else devices("g0")),))
    if what != "gone":
        put(story, "c0")
    if what == "another":
        claim(story, "c0")["metadata"]["uid"] = "other"
    if what == "deleted":
        claim(story, "c0")["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    story.run()
    assert whys(story) == {("ns/web-0", f"allocating devices: {REFUSALS[what]}")}


def test_whoever_else_uses_a_claim_keeps_it_when_a_gang_is_undone() -> None:
    story = GangStory((grant("c0", "web-0", None),), (grant("gone", "web-1", devices("g1")),))
    other = {"resource": "pods", "name": "other", "uid": "u9"}
    put(story, "c0", allocation=written("g0"), reservedFor=[other])
    story.run()
    assert claim(story, "c0")["status"] == {"allocation": written("g0"), "reservedFor": [other]}


def test_a_pod_that_runs_keeps_its_reservation_when_its_gang_is_undone() -> None:
    story = two_claims()
    story.api.refuse = lambda request: (
        ApiError(403, "Forbidden", "not allowed") if request.path == f"{PODS}/web-1/binding" else None
    )
    story.run(workers=2)
    for number, node in enumerate(story.nodes()):
        assert is_free(story, f"c{number}") == (not node)
    assert story.nodes()[1] == ""


CONDITIONAL: dict[str, Any] = {"binding_conditions": ("Ready",), "binding_failure_conditions": ("Broken",)}


def conditional() -> GangStory:
    story = GangStory((grant("c0", "web-0", devices("g0", **CONDITIONAL)),))
    put(story, "c0")
    return story


def say(story: GangStory, type: str, message: str = "") -> None:
    condition = {"type": type, "status": "True", "reason": "r", "message": message}
    device = {"driver": "gpu.example.com", "pool": "n1", "device": "g0", "conditions": [condition]}
    story.change(f"{DEVICE_CLAIMS}/c0", {"status": {"devices": [device]}})


def test_a_pod_is_bound_once_the_conditions_of_its_devices_are_true() -> None:
    story = conditional()

    def ready() -> None:
        assert story.nodes() == [""]
        say(story, "Ready")

    story.run(lambda: say(story, "Other"), ready)
    assert story.nodes() == ["n1"]


def test_a_device_that_will_never_be_ready_undoes_the_gang() -> None:
    story = conditional()
    story.run(lambda: say(story, "Broken", "no power"))
    assert whys(story) == {
        ("ns/web-0", "allocating devices: resourceclaim ns/c0: device g0 has Broken: no power")
    }
    assert is_free(story, "c0")


def test_conditions_that_take_too_long_undo_the_gang() -> None:
    story = conditional()

    def time_passes() -> None:
        story.seconds = 601.0
        say(story, "Other")

    story.run(time_passes)
    assert whys(story) == {
        ("ns/web-0", "allocating devices: resourceclaim ns/c0: Ready not true within 600 seconds")
    }
    assert is_free(story, "c0")


def test_a_claim_that_is_deallocated_while_its_conditions_are_awaited_undoes_the_gang() -> None:
    story = conditional()
    story.run(lambda: story.change(f"{DEVICE_CLAIMS}/c0", {"status": {"allocation": None}}))
    (failure,) = story.failures
    assert failure.why.endswith("resourceclaim ns/c0 was deallocated meanwhile")


def of_group(claim: str) -> ClaimGrant:
    consumer = ConsumerReference("scheduling.k8s.io", "podgroups", "web", "uid of group")
    return ClaimGrant("ns", claim, f"uid of {claim}", consumer, devices("g0"))


def test_a_claim_of_a_group_is_reserved_for_the_group_and_left_if_none_of_it_is_bound() -> None:
    story = GangStory((of_group("c0"),), (of_group("c0"),))
    put(story, "c0")
    story.run()
    assert [consumer["resource"] for consumer in claim(story, "c0")["status"]["reservedFor"]] == ["podgroups"]
    story = GangStory((of_group("c0"),), (grant("gone", "web-1", devices("g1")),))
    put(story, "c0")
    story.run()
    assert is_free(story, "c0")


def test_a_group_of_which_a_pod_may_run_keeps_its_claim() -> None:
    story = GangStory((of_group("c0"),), (of_group("c0"),))
    put(story, "c0")
    story.api.refuse = lambda request: (
        ApiError(403, "Forbidden", "not allowed") if request.path == f"{PODS}/web-1/binding" else None
    )
    story.run()
    assert claim(story, "c0")["status"]["reservedFor"]


def test_a_pod_that_was_entered_with_others_and_fails_before_its_own_write_is_taken_out() -> None:
    missing = VolumeGrant("ns", "gone", "u")
    for workers in (1, 2, 8):
        story = GangStory(
            (grant("c0", "web-0", devices("g0")),), (missing, grant("c0", "web-1", devices("g0")))
        )
        put(story, "c0")
        story.run(workers=workers)
        assert len(story.failures) == 2
        assert is_free(story, "c0")


def test_parameters_for_drivers_are_written_as_they_are() -> None:
    parameters = {"sharing": None, "nested": {"none": None, "list": [None, {}]}}
    configuration = AllocatedConfiguration(
        source="FromClaim", opaque=OpaqueConfiguration("gpu.example.com", parameters)
    )
    allocation = msgspec.structs.replace(
        devices("g0"), devices=AllocatedDevices(devices("g0").devices.results, (configuration,))
    )
    story = GangStory((grant("c0", "web-0", allocation),))
    put(story, "c0")
    story.run()
    (entry,) = claim(story, "c0")["status"]["allocation"]["devices"]["config"]
    assert entry["opaque"]["parameters"] == parameters
    story = GangStory((grant("c0", "web-1", None),), (grant("gone", "web-0", devices("g1")),))
    status = {"allocation": msgspec.to_builtins(allocation), "other": "status"}
    put(story, "c0", **status)
    story.run()
    assert msgspec.json.encode(claim(story, "c0")["status"]) == msgspec.json.encode(
        {**status, "reservedFor": []}
    )


def test_a_claim_that_another_takes_the_name_of_while_its_conditions_are_awaited_undoes_the_gang() -> None:
    story = conditional()

    def replaced() -> None:
        other = {"resource": "pods", "name": "other", "uid": "u9"}
        status = {"allocation": written("g5"), "reservedFor": [other]}
        story.api.put(f"{DEVICE_CLAIMS}/c0", {"metadata": {"uid": "another"}, "spec": {}, "status": status})
        story.change(f"{DEVICE_CLAIMS}/c0", {})

    story.run(replaced)
    (failure,) = story.failures
    assert failure.why.endswith("resourceclaim ns/c0 is no longer reserved for the pod")
    assert claim(story, "c0")["status"]["allocation"] == written("g5")
