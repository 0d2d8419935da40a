"""Volumes before a bind: what is written, what is waited for, and what is taken back."""

from __future__ import annotations

from typing import Any

import pytest

from stromboli.kube.request import ApiError, Backoff, NoResponse, Request
from stromboli.model.volumes.volume_grant import VolumeGrant
from stromboli.scheduler.writes import decision_writer as writing
from tests.scheduler.writes.prebind.gang_story import CLAIMS, PODS, VOLUMES, GangStory

BROKEN = ApiError(500, "InternalError", "etcd is on fire")
SELECTED = "volume.kubernetes.io/selected-node"
HANDED_OVER = "volume.kubernetes.io/storage-provisioner"


@pytest.fixture(autouse=True)
def hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writing, "BACKOFF", Backoff(first=0.001, longest=0.004))


def static(claim: str, volume: str) -> VolumeGrant:
    return VolumeGrant("ns", claim, f"uid of {claim}", volume)


def delayed(claim: str, timeout: int = 600) -> VolumeGrant:
    return VolumeGrant("ns", claim, f"uid of {claim}", timeout=timeout)


def two_delayed() -> GangStory:
    story = GangStory((delayed("c0"),), (delayed("c1"),))
    story.claim("c0")
    story.claim("c1")
    story.volume("v0")
    story.volume("v1")
    return story


def selected(story: GangStory, claim: str) -> str:
    return str(story.get(f"{CLAIMS}/{claim}")["metadata"]["annotations"].get(SELECTED, ""))


def test_no_pod_of_a_gang_is_bound_before_all_their_claims_are() -> None:
    story = two_delayed()

    def first_claim_is_bound() -> None:
        assert selected(story, "c0") == selected(story, "c1") == "n1"
        story.bound_claim("c0", "v0")

    def second_claim_is_bound() -> None:
        assert story.nodes() == ["", ""]
        story.bound_claim("c1", "v1")

    story.run(first_claim_is_bound, second_claim_is_bound)
    assert story.nodes() == ["n1", "n1"]
    assert not story.failures
    assert sorted(story.prebound) == ["web-0", "web-1"]


def test_a_pod_that_waits_long_for_its_volume_tells_once_for_which_and_by_whom() -> None:
    story = GangStory((delayed("c0"),))
    story.claim("c0", **{HANDED_OVER: "disk.example.com"})
    story.api.change(f"{CLAIMS}/c0", {"spec": {"storageClassName": "fast"}})
    story.volume("v0")

    def look_again(seconds: float) -> None:
        story.seconds = seconds
        assert story.writer is not None
        story.writer.prebinder.awaited.resume_all()

    def told() -> list[str]:
        return [event["message"] for event in story.events() if event["reason"] == "WaitingForVolume"]

    def soon() -> None:
        look_again(4.0)

    def late() -> None:
        assert not told()
        look_again(6.0)

    def later() -> None:
        assert len(told()) == 1
        look_again(40.0)

    story.run(soon, late, later, lambda: story.bound_claim("c0", "v0"))
    by = "of class fast to be provisioned by disk.example.com on node n1"
    assert told() == [f"waits for PersistentVolumeClaim c0 {by}"]
    assert story.nodes() == ["n1"]


def test_a_volume_that_exists_is_reserved_for_its_claim() -> None:
    story = GangStory((static("c0", "v0"),))
    story.claim("c0")
    story.volume("v0")
    story.run(lambda: story.bound_claim("c0", "v0"))
    volume = story.get(f"{VOLUMES}/v0")
    assert volume["metadata"]["annotations"] == {"pv.kubernetes.io/bound-by-controller": "yes"}
    assert volume["spec"]["claimRef"] == {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "namespace": "ns",
        "name": "c0",
        "uid": "uid of c0",
    }
    assert story.nodes() == ["n1"]


def test_a_volume_that_its_administrator_meant_for_the_claim_only_learns_the_uid() -> None:
    story = GangStory((static("c0", "v0"),), (delayed("c1"),))
    story.claim("c0")
    story.claim("c1")
    story.volume("v0", claimRef={"namespace": "ns", "name": "c0"})
    seen: list[Any] = []

    def refuse() -> None:
        seen.append(story.get(f"{VOLUMES}/v0"))
        story.change(f"{CLAIMS}/c1", {"metadata": {"annotations": {SELECTED: None}}})

    story.run(refuse)
    assert seen[0]["spec"]["claimRef"]["uid"] == "uid of c0"
    assert "annotations" not in seen[0]["metadata"]
    assert story.get(f"{VOLUMES}/v0")["spec"]["claimRef"] == {"namespace": "ns", "name": "c0"}


def test_two_pods_that_share_a_claim_write_it_once() -> None:
    story = GangStory((delayed("c0"),), (delayed("c0"),))
    story.claim("c0")
    story.volume("v0")
    story.run(lambda: story.bound_claim("c0", "v0"), workers=1)
    assert [write for write in story.api.writes if write[0] == "PATCH"] == [
        ("PATCH", "persistentvolumeclaims/c0")
    ]
    assert story.nodes() == ["n1", "n1"]


@pytest.mark.parametrize("lost", ["refused", "lost"])
def test_an_error_or_a_lost_answer_is_tried_again(lost: str) -> None:
    story = two_delayed()
    errors = [BROKEN if lost == "refused" else NoResponse("the connection broke")] * 2

    def once(request: Request) -> Exception | None:
        return errors.pop() if request.method == "PATCH" and errors else None

    setattr(story.api, "refuse" if lost == "refused" else "lose", once)
    story.run(lambda: story.bound_claim("c0", "v0"), lambda: story.bound_claim("c1", "v1"))
    assert not errors
    assert story.nodes() == ["n1", "n1"]
    assert not story.failures


def whys(story: GangStory) -> set[tuple[str, str]]:
    return {(failure.unprepared, failure.why) for failure in story.failures}


def test_a_provisioner_that_gives_up_undoes_the_gang_and_each_pod_is_told_of_the_claim() -> None:
    story = two_delayed()
    story.run(lambda: story.change(f"{CLAIMS}/c1", {"metadata": {"annotations": {SELECTED: None}}}))
    assert story.nodes() == ["", ""]
    assert whys(story) == {("ns/web-1", 'binding volumes: provisioning failed for PVC "c1"')}
    assert sorted(failure.decision.name for failure in story.failures) == ["web-0", "web-1"]
    assert selected(story, "c0") == ""


def test_what_a_controller_has_taken_up_already_stays_as_it_is() -> None:
    story = GangStory((delayed("c0"), static("c1", "v1"), static("c2", "v2")), (delayed("c3"),))
    for name in ("c0", "c1", "c2", "c3"):
        story.claim(name)
    story.volume("v1")
    story.volume("v2")

    def controllers_work() -> None:
        story.api.change(f"{CLAIMS}/c0", {"metadata": {"annotations": {HANDED_OVER: "csi"}}})
        story.api.change(f"{VOLUMES}/v1", {"status": {"phase": "Bound"}})
        story.change(f"{CLAIMS}/c3", {"metadata": {"annotations": {SELECTED: None}}})

    story.run(controllers_work)
    assert len(story.failures) == 2
    assert selected(story, "c0") == "n1"
    assert story.get(f"{VOLUMES}/v1")["spec"]["claimRef"]["name"] == "c1"
    assert "claimRef" not in story.get(f"{VOLUMES}/v2")["spec"]
    assert not story.get(f"{VOLUMES}/v2")["metadata"]["annotations"]


def test_a_claim_that_takes_too_long_undoes_the_gang() -> None:
    story = GangStory((delayed("c0", timeout=5),))
    story.claim("c0")

    def time_passes() -> None:
        story.seconds = 6.0
        story.change(f"{CLAIMS}/c0", {"metadata": {"annotations": {SELECTED: "n1"}}})
        story.writer._queue.resume(("Pod", "", "ns", "web-0"))  # type: ignore[union-attr]

    story.run(time_passes)
    assert whys(story) == {("ns/web-0", 'binding volumes: PVC "c0" was not bound within 5 seconds')}
    assert selected(story, "c0") == ""


REFUSALS = {
    "the claim was given another node": 'PVC "c0" was given node n2 meanwhile',
    "the claim is gone": 'persistentvolumeclaim "c0" is gone',
    "another claim has its name": 'persistentvolumeclaim "c0" is gone',
    "the API server does not allow it": "not allowed",
}


@pytest.mark.parametrize("what", REFUSALS)
def test_a_claim_that_cannot_get_the_node_undoes_the_gang(what: str) -> None:
    story = GangStory((delayed("c0"),))
    if what != "the claim is gone":
        story.claim("c0", **({SELECTED: "n2"} if "node" in what else {}))
    if "another" in what and "name" in what:
        story.api.objects[f"{CLAIMS}/c0"]["metadata"]["uid"] = "other"
    if "allow" in what:
        story.api.refuse = lambda request: (
            ApiError(403, "Forbidden", "not allowed") if request.method == "PATCH" else None
        )
    story.run()
    assert whys(story) == {("ns/web-0", f"binding volumes: {REFUSALS[what]}")}


def test_a_volume_that_another_scheduler_took_meanwhile_undoes_the_gang() -> None:
    story = GangStory((static("c0", "v0"),), (static("c1", "v1"),))
    story.claim("c0")
    story.claim("c1")
    story.volume("v0")
    story.volume("v1", claimRef={"namespace": "ns", "name": "theirs", "uid": "u9"})
    story.run()
    assert whys(story) == {("ns/web-1", 'binding volumes: pv "v1" was claimed by ns/theirs meanwhile')}
    assert "claimRef" not in story.get(f"{VOLUMES}/v0")["spec"]
    assert story.get(f"{VOLUMES}/v1")["spec"]["claimRef"]["name"] == "theirs"


def test_a_volume_whose_reservation_was_taken_off_undoes_the_gang() -> None:
    story = GangStory((static("c0", "v0"),))
    story.claim("c0")
    story.volume("v0")
    story.run(lambda: story.change(f"{VOLUMES}/v0", {"spec": {"claimRef": None}}))
    assert whys(story) == {("ns/web-0", 'binding volumes: ClaimRef got reset for pv "v0"')}


def test_a_new_volume_that_the_node_cannot_reach_undoes_the_gang() -> None:
    story = GangStory((delayed("c0"),), labels={"zone": "a"})
    story.claim("c0")
    terms = [{"matchExpressions": [{"key": "zone", "operator": "In", "values": ["b"]}]}]
    story.volume("v0", nodeAffinity={"required": {"nodeSelectorTerms": terms}})
    story.run(lambda: story.bound_claim("c0", "v0"))
    (failure,) = story.failures
    assert failure.why == (
        'binding volumes: pv "v0" cannot be reached from node n1: its node affinity does not match'
    )


def test_a_pod_that_is_deleted_while_its_gang_waits_undoes_the_gang() -> None:
    story = two_delayed()
    story.run(lambda: story.remove(f"{PODS}/web-1"))
    assert {(failure.decision.name, failure.gone) for failure in story.failures} == {
        ("web-0", False),
        ("web-1", True),
    }
    assert story.nodes() == [""]
    assert selected(story, "c0") == selected(story, "c1") == ""


def test_a_large_gang_waits_without_holding_a_writer() -> None:
    story = GangStory(*((delayed(f"c{number}"),) for number in range(300)))
    for number in range(300):
        story.claim(f"c{number}")
        story.volume(f"v{number}")

    def all_claims_are_bound() -> None:
        assert not any(story.nodes())
        for number in range(300):
            story.bound_claim(f"c{number}", f"v{number}")

    story.run(all_claims_are_bound, workers=4)
    assert all(story.nodes())
    assert story.api.most_at_once <= 4


def test_whoever_no_longer_leads_writes_nothing_more() -> None:
    story = two_delayed()

    def lease_is_lost() -> None:
        story.may_write = False
        story.bound_claim("c0", "v0")
        story.change(f"{CLAIMS}/c1", {"metadata": {"annotations": {SELECTED: None}}})

    story.run(lease_is_lost)
    assert story.nodes() == ["", ""]
    assert not story.failures
    assert selected(story, "c0") == "n1"


def test_a_claim_that_somebody_bound_to_another_volume_reserves_none() -> None:
    story = GangStory((static("c0", "v0"),))
    story.claim("c0")
    story.volume("v0")
    story.volume("v9")
    bound = {"metadata": {"annotations": {"pv.kubernetes.io/bind-completed": "yes"}}}
    story.api.change(f"{CLAIMS}/c0", {**bound, "spec": {"volumeName": "v9"}})
    story.run()
    assert story.nodes() == ["n1"]
    assert "claimRef" not in story.get(f"{VOLUMES}/v0")["spec"]


def test_a_claim_that_is_bound_to_another_volume_gives_back_the_one_that_was_reserved_for_it() -> None:
    story = GangStory((static("c0", "v0"),), labels={"zone": "a"})
    story.claim("c0")
    story.volume("v0")
    terms = [{"matchExpressions": [{"key": "zone", "operator": "In", "values": ["b"]}]}]
    story.volume("v9", nodeAffinity={"required": {"nodeSelectorTerms": terms}})
    story.run(lambda: story.bound_claim("c0", "v9"))
    assert 'pv "v9" cannot be reached' in story.failures[0].why
    assert "claimRef" not in story.get(f"{VOLUMES}/v0")["spec"]


def test_a_bound_claim_whose_volume_is_not_there_is_not_waited_for_for_ever() -> None:
    story = GangStory((delayed("c0", timeout=5),))
    story.claim("c0")

    def time_passes() -> None:
        story.seconds = 6.0
        story.bound_claim("c0", "lost")

    story.run(lambda: story.bound_claim("c0", "lost"), time_passes)
    assert whys(story) == {("ns/web-0", 'binding volumes: PVC "c0" was not bound within 5 seconds')}


def test_a_controller_that_binds_while_the_gang_is_undone_keeps_its_volume() -> None:
    """It was slower than the timeout, and goes on between our last look and the write that takes it back."""
    story = GangStory((VolumeGrant("ns", "c0", "uid of c0", "v0", timeout=5),))
    story.claim("c0")
    story.volume("v0")

    def controller(request: Request) -> Exception | None:
        if request.method == "PATCH" and b'"claimRef":null' in (request.body or b""):
            story.api.change(f"{VOLUMES}/v0", {"status": {"phase": "Bound"}})
        return None

    def time_passes() -> None:
        story.api.refuse = controller
        story.seconds = 6.0
        story.writer._queue.resume(("Pod", "", "ns", "web-0"))  # type: ignore[union-attr]

    story.run(time_passes)
    assert len(story.failures) == 1
    assert story.get(f"{VOLUMES}/v0")["spec"]["claimRef"]["name"] == "c0"


@pytest.mark.parametrize("again", [False, True])
def test_a_claim_that_is_deleted_while_it_is_awaited_undoes_the_gang(again: bool) -> None:
    """Also if another of its name was made, and bound, before anybody looked."""
    story = two_delayed()

    def claim_goes() -> None:
        if again:
            story.api.put(f"{CLAIMS}/c1", {"metadata": {"uid": "another", "annotations": {}}, "spec": {}})
            story.bound_claim("c1", "v1")
        else:
            story.remove(f"{CLAIMS}/c1")

    story.run(claim_goes)
    assert story.nodes() == ["", ""]
    assert whys(story) == {("ns/web-1", 'binding volumes: persistentvolumeclaim "c1" is gone')}
    assert selected(story, "c0") == ""
