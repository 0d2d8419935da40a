"""Binds of a gang go together: what happens when one of the binds themselves fails."""

from __future__ import annotations

import pytest

from stromboli.engine.decisions import Bind
from stromboli.kube.request import ApiError, Backoff, NoResponse, Request
from stromboli.model.cards.pod_cards import CardGrant
from stromboli.model.ledgers import Grant
from stromboli.model.volumes.volume_grant import VolumeGrant
from stromboli.scheduler.writes import decision_writer as writing
from stromboli.scheduler.writes.write_orders import Gang, WriteOrder
from tests.scheduler.writes.prebind.gang_story import CLAIMS, PODS, GangStory, elastic, gang

SELECTED = "volume.kubernetes.io/selected-node"


@pytest.fixture(autouse=True)
def hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writing, "BACKOFF", Backoff(first=0.001, longest=0.004))


def bind_of(pod: str, request: Request) -> bool:
    return request.path == f"{PODS}/{pod}/binding"


def test_pods_that_need_nothing_wait_for_those_of_their_gang_that_do() -> None:
    story = gang(3)

    def claim_is_bound() -> None:
        assert story.nodes() == ["", "", ""]
        story.bound_claim("c0", "v0")

    story.run(claim_is_bound, workers=1)
    assert story.nodes() == ["n1", "n1", "n1"]


def test_a_bind_that_is_refused_takes_those_with_it_that_are_not_bound_yet() -> None:
    story = gang(3)
    story.api.refuse = lambda request: (
        ApiError(403, "Forbidden", "not allowed") if bind_of("web-0", request) else None
    )
    story.run(lambda: story.bound_claim("c0", "v0"), workers=1)
    assert story.nodes()[0] == ""
    given_up = {failure.decision.name: failure for failure in story.failures}
    assert given_up.keys() == {f"web-{number}" for number, node in enumerate(story.nodes()) if not node}
    assert given_up["web-0"].why == "not allowed"
    others = {failure.why for name, failure in given_up.items() if name != "web-0"}
    assert others <= {"pod ns/web-0 of the same gang was not bound: not allowed"}
    assert not any(failure.unprepared for failure in story.failures)


@pytest.mark.parametrize("carried_out", [True, False])
def test_a_bind_whose_answer_was_lost_is_sent_again_also_when_its_gang_is_given_up(carried_out: bool) -> None:
    """It may be carried out at any moment, so what was written for the pod is not taken from it."""
    story = elastic(2, spare=0)
    broken: list[Exception] = [NoResponse("the connection broke")]

    def fail_once(request: Request) -> Exception | None:
        return broken.pop() if bind_of("web-0", request) and broken else None

    def refuse(request: Request) -> Exception | None:
        if bind_of("web-1", request):  # for good only once the other has been sent
            return ApiError(500, "", "later") if broken else ApiError(403, "Forbidden", "not allowed")
        return None if carried_out else fail_once(request)

    story.api.refuse = refuse
    story.api.lose = fail_once if carried_out else story.api.lose
    story.run(lambda: story.bound_claim("c0", "v0"), lambda: story.bound_claim("c1", "v1"))
    assert not broken
    assert story.nodes() == ["n1", ""]
    assert [failure.decision.name for failure in story.failures] == ["web-1"]
    assert "web-0" in story.done
    assert not any(b"null" in (request.body or b"") for request in story.api.requests)


def test_a_pod_that_another_scheduler_bound_keeps_what_was_written_for_it() -> None:
    story = gang(2)

    def another_binds_it() -> None:
        story.api.change(f"{PODS}/web-0", {"spec": {"nodeName": "n1"}})
        story.remove(f"{PODS}/web-1")
        story.change(f"{CLAIMS}/c0", {"metadata": {"annotations": {"some": "change", SELECTED: "n1"}}})
        story.bound_claim("c0", "v0")

    story.run(another_binds_it)
    assert story.get(f"{CLAIMS}/c0")["metadata"]["annotations"][SELECTED] == "n1"


def test_what_cannot_be_taken_back_holds_nobody_up() -> None:
    story = gang(2)

    def refuse(request: Request) -> Exception | None:
        if request.method == "PATCH" and b"null" in (request.body or b""):
            return ApiError(403, "Forbidden", "not allowed")
        return None

    story.api.refuse = refuse
    story.run(lambda: story.remove(f"{PODS}/web-0"))
    assert len(story.failures) == 2
    assert story.get(f"{CLAIMS}/c0")["metadata"]["annotations"][SELECTED] == "n1"


def test_a_nonsensical_answer_undoes_the_gang() -> None:
    story = gang(2)
    story.api.objects[f"{CLAIMS}/c0"]["spec"] = []  # type: ignore[assignment]
    story.run()
    assert {failure.unprepared for failure in story.failures} == {"ns/web-0"}
    assert len(story.failures) == 2


def test_annotations_of_grants_go_with_the_binding_and_no_others_do() -> None:
    cards = CardGrant("hamivgpu", (), (("a", "1"), ("b", "2")))
    more = CardGrant("GpuShare", (), (("b", "3"), ("c", "4")))
    story = GangStory((cards, more))
    story.api.change(f"{PODS}/web-0", {"metadata": {"annotations": {"mine": "yes"}}})
    story.run()
    binding = story.api.requests[0]
    assert b'"annotations":{"a":"1","b":"3","c":"4"}' in (binding.body or b"")


def test_a_pod_beyond_the_minimum_is_bound_later_without_holding_the_others_up() -> None:
    story = elastic()

    def enough_are_ready() -> None:
        story.bound_claim("c0", "v0")
        story.bound_claim("c2", "v2")

    def the_last_is_ready() -> None:
        assert story.nodes() == ["n1", "", "n1"]
        story.bound_claim("c1", "v1")

    story.run(lambda: story.bound_claim("c0", "v0"), enough_are_ready, the_last_is_ready)
    assert story.nodes() == ["n1", "n1", "n1"]


def test_a_pod_beyond_the_minimum_fails_alone_and_the_next_takes_the_others_with_it() -> None:
    story = elastic()
    refusal = {"metadata": {"annotations": {SELECTED: None}}}

    def one_is_ready() -> None:
        assert [failure.decision.name for failure in story.failures] == ["web-1"]
        story.bound_claim("c0", "v0")

    def another_fails() -> None:
        assert story.nodes() == ["", "", ""]
        story.change(f"{CLAIMS}/c2", refusal)

    story.run(lambda: story.change(f"{CLAIMS}/c1", refusal), one_is_ready, another_fails)
    assert story.nodes() == ["", "", ""]
    assert {failure.decision.name: failure.unprepared for failure in story.failures} == {
        "web-1": "ns/web-1",
        "web-0": "ns/web-2",
        "web-2": "ns/web-2",
    }


def test_a_gang_goes_on_without_the_pod_that_it_can_spare() -> None:
    story = elastic()

    def the_others_are_ready() -> None:
        story.bound_claim("c0", "v0")
        story.bound_claim("c2", "v2")

    refusal = {"metadata": {"annotations": {SELECTED: None}}}
    story.run(the_others_are_ready, lambda: story.change(f"{CLAIMS}/c1", refusal))
    assert story.nodes() == ["n1", "", "n1"]
    assert [failure.decision.name for failure in story.failures] == ["web-1"]


def test_the_pods_of_a_gang_that_is_given_up_come_back_all_at_once() -> None:
    """Else a cycle would take those that come later for placed, and bind a part of the gang."""
    story = gang(5)
    story.run(lambda: story.remove(f"{PODS}/web-0"), workers=2)
    assert [len(together) for together in story.told] == [5]


def test_pods_that_a_later_cycle_adds_to_a_job_wait_for_its_gang() -> None:
    story = gang(2)
    late = Bind("ns", "late", "uid of late", "n1", "ns/web")
    story.api.put(f"{PODS}/late", {"spec": {}})

    def another_cycle_decides() -> None:
        assert story.writer is not None
        story.writer.outbox.submit([WriteOrder(late, job=late.job)])

    def claim_is_bound() -> None:
        assert story.api.node_of("late") == ""
        story.bound_claim("c0", "v0")

    story.run(another_cycle_decides, claim_is_bound)
    assert story.nodes() == ["n1", "n1"]
    assert story.api.node_of("late") == "n1"


def test_pods_that_a_later_cycle_adds_go_with_the_gang_that_fails() -> None:
    story = gang(2)
    late = Bind("ns", "late", "uid of late", "n1", "ns/web")
    story.api.put(f"{PODS}/late", {"spec": {}})

    def another_cycle_decides() -> None:
        assert story.writer is not None
        story.writer.outbox.submit([WriteOrder(late, job=late.job)])

    story.run(another_cycle_decides, lambda: story.remove(f"{PODS}/web-0"))
    assert story.api.node_of("late") == ""
    assert [len(together) for together in story.told] == [3]


def test_pods_that_were_ready_go_on_when_another_takes_the_place_of_one_that_was_refused() -> None:
    """Three of five are needed. One of the first three is refused, so the others need a fourth."""
    story = elastic(5, spare=2)
    story.api.refuse = lambda request: (
        ApiError(403, "Forbidden", "not allowed") if bind_of("web-0", request) else None
    )

    def three_are_ready() -> None:
        for number in range(3):
            story.bound_claim(f"c{number}", f"v{number}")

    story.run(three_are_ready, lambda: story.bound_claim("c3", "v3"), workers=1)
    assert story.nodes() == ["", "n1", "n1", "n1", ""]
    assert [failure.decision.name for failure in story.failures] == ["web-0"]


def test_a_gang_waits_for_all_its_pods_also_after_a_spare_pod_of_its_job_has_failed_alone() -> None:
    story = elastic(1, spare=1)
    story.claim("c1")
    story.volume("v1")
    names = ("new-0", "new-1")
    for name in names:
        story.api.put(f"{PODS}/{name}", {"spec": {}})

    def a_new_gang_is_decided() -> None:
        assert [failure.decision.name for failure in story.failures] == ["web-0"]
        claimed = (VolumeGrant("ns", "c1", "uid of c1"),)
        binds = [
            Bind("ns", name, f"uid of {name}", "n1", "ns/web", grants)
            for name, grants in zip(names, (claimed, ()), strict=True)
        ]
        together, orders = Gang(), [WriteOrder(bind, job=bind.job) for bind in binds]
        for order, bind in zip(orders, binds, strict=True):
            together.add(order, bind.uid, None)
        assert story.writer is not None
        story.writer.outbox.submit(orders)

    def claim_is_bound() -> None:
        assert [story.api.node_of(name) for name in names] == ["", ""]
        story.bound_claim("c1", "v1")

    refusal = {"metadata": {"annotations": {SELECTED: None}}}
    story.run(lambda: story.change(f"{CLAIMS}/c0", refusal), a_new_gang_is_decided, claim_is_bound)
    assert [story.api.node_of(name) for name in names] == ["n1", "n1"]


def test_all_that_can_be_taken_back_is_whatever_else_cannot() -> None:
    held = tuple(VolumeGrant("ns", f"c{number}", f"uid of c{number}") for number in range(3))
    story = GangStory(held)
    for number in range(3):
        story.claim(f"c{number}")

    def refuse(request: Request) -> Exception | None:
        forbidden = request.path.endswith("/c1") and b"null" in (request.body or b"")
        return ApiError(403, "Forbidden", "not allowed") if forbidden else None

    story.api.refuse = refuse
    story.run(lambda: story.remove(f"{PODS}/web-0"))
    assert [
        story.get(f"{CLAIMS}/c{number}")["metadata"]["annotations"].get(SELECTED) for number in range(3)
    ] == [None, "n1", None]
    assert len(story.failures) == 1


def test_pods_of_another_job_with_the_same_name_wait_for_nobody() -> None:
    """A native group may have the name of one of Volcano's."""
    story = gang(2)
    other = Bind("ns", "other", "uid of other", "n1", "ns/web")
    story.api.put(f"{PODS}/other", {"spec": {}})

    def another_job_is_placed() -> None:
        assert story.writer is not None
        story.writer.outbox.submit([WriteOrder(other, job="native ns/web")])

    def it_is_bound() -> None:
        assert story.api.node_of("other") == "n1"
        assert story.nodes() == ["", ""]

    story.run(another_job_is_placed, it_is_bound)


def test_every_grant_that_needs_a_write_has_a_writer() -> None:
    story = GangStory().run()
    needing = {kind for kind in Grant.__subclasses__() if kind.needs_write is not Grant.needs_write}
    assert story.writer is not None
    assert needing == story.writer.prebinder._writers.keys()
