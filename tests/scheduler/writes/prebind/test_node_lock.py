"""The lock of a node whose device plugin serves one pod at a time."""

from __future__ import annotations

import pytest

from stromboli.api.go_scalars import timestamp
from stromboli.kube.request import ApiError, Backoff, NoResponse, Request
from stromboli.model.cards.pod_cards import CardGrant
from stromboli.model.volumes.volume_grant import VolumeGrant
from stromboli.scheduler.writes import decision_writer as writing
from stromboli.scheduler.writes.prebind import prebinder
from tests.scheduler.writes.prebind.gang_story import NODES, NOW, PODS, GangStory

LOCK = "volcano.sh/mutex.lock"
CARDS = CardGrant("hamivgpu", (), (("volcano.sh/vgpu-node", "n1"),), LOCK)


@pytest.fixture(autouse=True)
def hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writing, "BACKOFF", Backoff(first=0.001, longest=0.004))
    monkeypatch.setattr(prebinder, "_PAUSE", 0.001)


def lock(story: GangStory) -> str:
    return str(story.get(f"{NODES}/n1")["metadata"].get("annotations", {}).get(LOCK, ""))


def locked(time: str) -> GangStory:
    story = GangStory((CARDS,))
    story.api.change(f"{NODES}/n1", {"metadata": {"annotations": {LOCK: time}}})
    return story


def test_a_node_is_locked_before_the_bind_and_the_pod_is_told_its_cards_with_it() -> None:
    story = GangStory((CARDS,)).run()
    assert lock(story) == timestamp(NOW)
    assert story.api.writes == [("PATCH", "nodes/n1"), ("POST", "pods/web-0/binding")]
    assert story.get(f"{PODS}/web-0")["metadata"]["annotations"] == {"volcano.sh/vgpu-node": "n1"}


def test_a_node_that_somebody_locked_minutes_ago_cannot_be_used() -> None:
    story = locked(timestamp(NOW - 200)).run()
    (failure,) = story.failures
    assert failure.why == "node n1 has been locked within 5 minutes"
    assert lock(story) == timestamp(NOW - 200)


@pytest.mark.parametrize(
    "time",
    [timestamp(NOW - 301), "2001-01-01T00:00:00.5+02:00", "yesterday", "2001-01-01", "2999-12-31T00:00:00Z"],
)
def test_a_lock_that_was_left_behind_is_replaced(time: str) -> None:
    story = locked(time).run()
    assert story.nodes() == ["n1"]
    assert lock(story) == timestamp(NOW)


def test_pods_of_a_gang_on_one_node_share_the_lock() -> None:
    story = GangStory((CARDS,), (CARDS,)).run()
    assert story.nodes() == ["n1", "n1"]
    assert lock(story) == timestamp(NOW)


def test_a_lock_whose_answer_was_lost_is_known_again() -> None:
    story = GangStory((CARDS,))
    losses = [NoResponse("the connection broke")]
    story.api.lose = lambda request: losses.pop() if request.method == "PATCH" and losses else None
    story.run()
    assert story.nodes() == ["n1"]


def test_a_node_that_changes_meanwhile_is_read_again() -> None:
    story = GangStory((CARDS,))
    changes = 3

    def heartbeat(request: Request) -> Exception | None:
        nonlocal changes
        if request.method == "PATCH" and changes:
            changes -= 1
            story.api.change(f"{NODES}/n1", {"status": {"beat": changes}})
        return None

    story.api.refuse = heartbeat
    story.run()
    assert story.nodes() == ["n1"]


def test_a_node_is_not_locked_while_the_pod_waits_for_its_volume() -> None:
    """The lock would run out before the volume is there, and keep others off the node."""
    story = GangStory((CARDS, VolumeGrant("ns", "c0", "uid of c0")))
    story.claim("c0")
    story.volume("v0")

    def claim_is_bound() -> None:
        assert lock(story) == ""
        story.seconds = 590.0
        story.bound_claim("c0", "v0")

    story.run(claim_is_bound)
    assert story.nodes() == ["n1"]
    assert lock(story) == timestamp(NOW + 590)


def test_a_lock_is_taken_off_if_the_pod_is_not_bound_after_all() -> None:
    refused = VolumeGrant("ns", "gone", "u")
    story = GangStory((CARDS,), (refused,)).run()
    assert len(story.failures) == 2
    assert lock(story) == ""


def test_a_node_that_is_gone_is_said_to_be() -> None:
    story = GangStory((CARDS,))

    def node_is_gone(request: Request) -> Exception | None:
        return ApiError(404, "NotFound", "not found") if request.path == f"{NODES}/n1" else None

    story.api.refuse = node_is_gone
    story.run()
    assert [failure.why for failure in story.failures] == ["node n1 is gone"]
