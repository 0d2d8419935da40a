"""A gang that waits, maybe for minutes: its pods or its nodes go meanwhile, or the process ends."""

from __future__ import annotations

import pytest

from stromboli.engine.decisions import Bind
from stromboli.kube.request import Backoff
from stromboli.scheduler.writes import decision_writer as writing
from stromboli.scheduler.writes.write_orders import WriteOrder
from tests.scheduler.writes.prebind.gang_story import CLAIMS, NODES, PATIENCE, PODS, elastic, gang

SELECTED = "volume.kubernetes.io/selected-node"


@pytest.fixture(autouse=True)
def hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writing, "BACKOFF", Backoff(first=0.001, longest=0.004))


def test_a_pod_that_is_deleted_while_it_waits_for_others_undoes_the_gang_before_any_is_bound() -> None:
    story = gang(3)
    story.run(lambda: story.remove(f"{PODS}/web-1"), lambda: story.bound_claim("c0", "v0"))
    assert story.nodes() == ["", ""]
    assert [len(together) for together in story.told] == [3]


def test_a_pod_that_went_before_it_waited_for_others_undoes_the_gang_before_any_is_bound() -> None:
    """No watch shows it any more."""
    story = gang(3)
    del story.api.objects[f"{PODS}/web-1"]
    story.run(lambda: story.bound_claim("c0", "v0"))
    assert story.nodes() == ["", ""]
    assert {failure.decision.name: failure.gone for failure in story.failures} == {
        "web-0": False,
        "web-1": True,
        "web-2": False,
    }


@pytest.mark.parametrize("ready", [False, True])
def test_a_node_that_is_deleted_while_a_gang_waits_undoes_the_gang(ready: bool) -> None:
    story = elastic(2, spare=0)

    def node_is_deleted() -> None:
        if ready:
            story.bound_claim("c0", "v0")
        story.remove(f"{NODES}/n1")

    story.run(node_is_deleted, lambda: story.bound_claim("c1", "v1"))
    assert story.nodes() == ["", ""]
    (why,) = {failure.why.removeprefix("binding volumes: ") for failure in story.failures}
    assert why == "node n1 is gone"
    assert all(failure.unprepared for failure in story.failures)


def test_a_node_that_only_changes_disturbs_nobody() -> None:
    story = gang(2)

    def node_changes() -> None:
        before = len(story.api.requests)
        story.change(f"{NODES}/n1", {"metadata": {"labels": {"a": "b"}}})
        assert len(story.api.requests) == before

    story.run(node_changes, lambda: story.bound_claim("c0", "v0"))
    assert story.nodes() == ["n1", "n1"]


def test_a_pod_with_the_name_of_one_that_went_is_another_member_of_the_gang() -> None:
    story = gang(2)
    again = Bind("ns", "web-1", "uid of another", "n1", "ns/web")

    def web_1_is_replaced() -> None:
        assert story.writer is not None
        story.writer.outbox.submit([WriteOrder(again, job=again.job)])
        story.api.put(f"{PODS}/web-1", {"metadata": {"uid": "uid of another"}, "spec": {}})
        story.remove(f"{PODS}/web-1")

    story.run(web_1_is_replaced)
    assert [sorted(failure.decision.uid for failure in told) for told in story.told] == [
        ["uid of another", "uid of web-0", "uid of web-1"]
    ]


def test_a_process_that_ends_leaves_a_gang_that_waits_as_it_is_at_once() -> None:
    story = gang(3)
    story.run()
    assert story.seconds_to_finish < PATIENCE / 2
    assert story.all_written is False
    assert story.nodes() == ["", "", ""]
    assert not story.failures
    assert story.get(f"{CLAIMS}/c0")["metadata"]["annotations"][SELECTED] == "n1", "for the next leader"


def test_a_process_that_ends_still_sends_the_binds_that_can_be_sent() -> None:
    story = elastic(3, spare=1)

    def enough_are_ready() -> None:
        story.bound_claim("c0", "v0")
        story.bound_claim("c2", "v2")

    story.run(enough_are_ready)
    assert story.nodes() == ["n1", "", "n1"]
    assert story.all_written is False
    assert story.seconds_to_finish < PATIENCE / 2
