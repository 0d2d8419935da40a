"""Parts of GPUs by memory, cores, type and uuid: the card of a pod, and why it gets none."""

from __future__ import annotations

from typing import Any

import pytest

from stromboli.api.card_reasons import REASONS
from stromboli.engine.decisions import Bind, Event, QueueStatus
from stromboli.model.cards.pod_cards import CardGrant, CardShare
from stromboli.plugins.deviceshare.vgpu_request import VgpuRequest
from stromboli.testing.world import NOON
from tests.manifests import group, node
from tests.plugins.deviceshare.card_worlds import (
    card,
    card_pod,
    card_policy,
    held,
    shares_of,
    vgpu,
    vgpu_node,
    world_of,
)

VGPU = card_policy(VGPUEnable=True)


def test_a_bind_carries_the_annotations_that_the_device_plugin_reads() -> None:
    world = world_of(VGPU, vgpu_node("a"), card_pod("p", vgpu(3000, 30), {"cpu": 1}, vgpu(1000, number=2)))
    (bind,) = [decision for decision in world.step().decisions if isinstance(decision, Bind)]
    (grant,) = bind.grants
    ids = "GPU-a-1,NVIDIA,3000,30:;GPU-a-1,NVIDIA,1000,0:GPU-a-0,NVIDIA,1000,0:"
    seconds = str(int(NOON))
    assert grant == CardGrant(
        "hamivgpu",
        (
            (CardShare("GPU-a-1", 3000, 30),),
            (CardShare("GPU-a-1", 1000), CardShare("GPU-a-0", 1000)),
        ),
        (
            ("volcano.sh/vgpu-node", "a"),
            ("volcano.sh/vgpu-time", seconds),
            ("volcano.sh/vgpu-ids-new", ids),
            ("volcano.sh/devices-to-allocate", ids),
            ("volcano.sh/bind-phase", "allocating"),
            ("volcano.sh/bind-time", seconds),
        ),
    )


@pytest.mark.parametrize(
    ("arguments", "cards"),
    [
        ({}, ["GPU-a-2"]),
        ({"SchedulePolicy": "binpack"}, ["GPU-a-1"]),
        ({"SchedulePolicy": "spread"}, ["GPU-a-0"]),
    ],
)
def test_the_policy_says_which_card_is_taken_first(arguments: dict[str, str], cards: list[str]) -> None:
    nodes = vgpu_node("a", *(card(f"GPU-a-{i}") for i in range(3)))
    running = card_pod("old", vgpu(3000), on="a", annotations=held("GPU-a-1,NVIDIA,3000,0:"))
    world = world_of(card_policy(VGPUEnable=True, **arguments), nodes, running, card_pod("p", vgpu(1000)))
    world.step()
    assert shares_of(world.task("p")) == cards


@pytest.mark.parametrize(
    ("limits", "annotations", "reason"),
    [
        (vgpu(8001), {}, "no card as large as 8001 of volcano.sh/vgpu-memory"),
        (vgpu(7000), {}, "no card with 7000 of volcano.sh/vgpu-memory free"),
        (vgpu(1000, 60), {}, "no card with free cores for 60 of volcano.sh/vgpu-cores"),
        (vgpu(1000, 100), {}, "no card with free cores for 100 of volcano.sh/vgpu-cores"),
        (vgpu(1000, number=3), {}, "fewer cards than the 3 of a container"),
        (vgpu(1000), {"nvidia.com/use-gputype": "H200,T4"}, "no card of the type H200 or T4"),
        (vgpu(1000), {"nvidia.com/nouse-gputype": "a100"}, "no card of the type NVIDIA other than A100"),
        (vgpu(1000), {"volcano.sh/vgpu-use-gpuuuid": "GPU-b-0"}, "no card that the lists of uuids allow"),
        (vgpu(1000), {"volcano.sh/vgpu-mode": "mig"}, "shared their cards in another mode than mig"),
    ],
)
def test_a_refusal_says_what_is_short_and_what_would_help(
    limits: dict[str, int], annotations: dict[str, str], reason: str
) -> None:
    """Volcano says `hami-vgpuDeviceSharing error`, whatever it is."""
    running = [
        card_pod(f"old{i}", vgpu(2000, 50), on="a", annotations=held(f"GPU-a-{i},NVIDIA,2000,50:"))
        for i in range(2)
    ]
    world = world_of(VGPU, vgpu_node("a"), *running, card_pod("p", limits, annotations=annotations))
    result = world.step()
    assert result.binds == {}
    assert f"1 node(s) had {reason}" in result.why("p") or f"1 node(s) {reason}" in result.why("p")
    assert result.pending["default/p"].hint


@pytest.mark.parametrize(
    ("limits", "annotations", "helps"),
    [
        (vgpu(8001), {}, "request less of a card, or add nodes with larger cards"),
        (
            vgpu(1000),
            {"nvidia.com/use-gputype": "T4"},
            "change nvidia.com/use-gputype or nvidia.com/nouse-gputype",
        ),
        (vgpu(1000), {"volcano.sh/vgpu-use-gpuuuid": "x"}, "change volcano.sh/vgpu-use-gpuuuid"),
    ],
)
def test_nodes_without_cards_do_not_hide_what_no_card_can_serve(
    limits: dict[str, Any], annotations: dict[str, str], helps: str
) -> None:
    others = [node("b", cpu=8), node("c", cpu=8)]
    world = world_of(VGPU, vgpu_node("a"), *others, card_pod("p", limits, annotations=annotations))
    explained = world.step().pending["default/p"]
    assert explained.hint.startswith(helps)
    assert f"; {helps}" in explained.sentence
    assert "wait until" not in explained.sentence


def test_cores_alone_ask_for_no_card() -> None:
    world = world_of(VGPU, vgpu_node("a"), card_pod("p", vgpu(0, 50, number=0)))
    result = world.step()
    assert result.binds == {}
    reason = "volcano.sh/vgpu-cores asks for no card: a container must limit volcano.sh/vgpu-number or "
    assert reason in result.why("p")
    assert result.pending["default/p"].hint == "add that limit to the container"


def test_every_reason_of_cards_has_its_own_text_and_a_remedy() -> None:
    assert len({reason.text for reason in REASONS}) == len(REASONS)
    assert all(reason.remedy for reason in REASONS)


def test_a_card_with_all_cores_granted_takes_no_other_pod_and_a_shared_one_is_not_granted_whole() -> None:
    whole = card_pod("whole", vgpu(1000, 100), on="a", annotations=held("GPU-a-0,NVIDIA,1000,100:"))
    some = card_pod("some", vgpu(1000), on="a", annotations=held("GPU-a-1,NVIDIA,1000,0:"))
    world = world_of(
        VGPU,
        vgpu_node("a"),
        whole,
        some,
        card_pod("p", vgpu(1000)),
        card_pod("q", vgpu(1000, 100)),
    )
    assert world.step().binds == {"default/p": "a"}
    assert shares_of(world.task("p")) == ["GPU-a-1"]


@pytest.mark.parametrize(
    ("policy", "scores"),
    [("binpack", {"a": 50.0, "b": 25.0}), ("spread", {"a": 0.0, "b": 0.0}), ("", {"a": 0.0, "b": 0.0})],
)
def test_cards_that_are_fuller_with_the_pod_are_worth_more_where_they_are_packed(
    policy: str, scores: dict[str, float]
) -> None:
    """# quirk: spec 04 10.3: an unused card is worth nothing to those who spread."""
    text = card_policy(VGPUEnable=True, SchedulePolicy=policy, ScheduleWeight=3)
    running = card_pod("old", vgpu(2000), on="a", annotations=held("GPU-a,NVIDIA,2000,0:"))
    nodes = [vgpu_node(name, card(f"GPU-{name}")) for name in "ab"]
    waiting = [group("j", 2, phase="Inqueue"), *card_pod("p", vgpu(2000), job="j")]
    world = world_of(text, *nodes, running, waiting)
    world.step()
    assert world.scores("deviceshare", "p") == scores


def test_pods_wait_while_the_policy_is_without_and_get_cards_once_it_is_back() -> None:
    running = card_pod("old", vgpu(6000), on="a", annotations=held("GPU-a-1,NVIDIA,6000,0:"))
    world = world_of(VGPU, vgpu_node("a"), running)
    world.run(policy=VGPU)
    world.add(*card_pod("p", vgpu(7000)), *card_pod("q", vgpu(7000)))
    assert world.run("allocate", "gang predicates").binds == {}
    assert world.run(policy=card_policy(GPUSharingEnable=True)).binds == {}
    assert world.run(policy=VGPU).binds == {"default/p": "a"}
    assert shares_of(world.task("p")) == ["GPU-a-0"]


def test_without_memory_a_container_gets_all_of_the_card() -> None:
    world = world_of(VGPU, vgpu_node("a"), *(card_pod(name, vgpu()) for name in "pqr"))
    assert set(world.step().binds) == {"default/p", "default/q"}
    assert {task.grants[0].containers[0][0].memory for task in map(world.task, "pq")} == {8000}  # type: ignore[attr-defined]


def test_a_card_is_given_out_in_so_many_shares_and_no_more() -> None:
    world = world_of(VGPU, vgpu_node("a", card("GPU-0", count=2)), *(card_pod(p, vgpu(1)) for p in "pqr"))
    result = world.step()
    assert len(result.binds) == 2
    assert "no card with a share left" in result.why("r")


def test_uuids_are_compared_as_a_whole() -> None:
    cards = [card("GPU-1"), card("GPU-10")]
    running = card_pod("old", vgpu(8000), on="a", annotations=held("GPU-10,NVIDIA,8000,0:"))
    world = world_of(VGPU, vgpu_node("a", *cards), running, card_pod("p", vgpu(8000)))
    world.step()
    assert shares_of(world.task("p")) == ["GPU-1"]


def test_pods_that_match_the_same_exclusive_rule_share_no_card() -> None:
    rules = [{"team": "red"}, {"team": "blue", "tier": "gold"}, {}, {"number": 3}]
    text = card_policy(VGPUEnable=True, GPUExclusiveRules=rules)
    red, blue = {"team": "red"}, {"team": "blue", "tier": "gold"}
    pods = [
        card_pod(name, vgpu(1000), labels=labels)
        for name, labels in (("r0", red), ("r1", red), ("r2", red), ("b0", blue), ("other", {"team": "blue"}))
    ]
    world = world_of(text, vgpu_node("a"), *pods)
    result = world.step()
    assert set(result.binds) == {"default/r0", "default/r1", "default/b0", "default/other"}
    assert shares_of(world.task("r0")) != shares_of(world.task("r1"))
    assert "no card free of pods of the same deviceshare.GPUExclusiveRules" in result.why("r2")


def test_what_a_running_pod_holds_counts_from_its_annotation_after_a_restart() -> None:
    world = world_of(VGPU, vgpu_node("a", card("GPU-0")), card_pod("p", vgpu(5000)))
    world.step(2)
    again = world_of(VGPU, vgpu_node("a", card("GPU-0")))
    annotations = {**world.task("p").annotations}
    again.add(*card_pod("p", vgpu(5000), on="a", annotations=annotations))
    again.add(*card_pod("next", vgpu(4000)))
    assert again.step().binds == {}
    cards = [world.cluster.cards.nodes["a"]["hamivgpu"] for world in (world, again)]
    assert [node.now.memory for node in cards] == [[5000], [5000]]


def test_preempting_evicts_for_a_part_of_a_card_and_no_pod_in_vain() -> None:
    text = card_policy("allocate, preempt", "priority gang conformance", VGPUEnable=True)
    low = [
        card_pod(f"low-{i}", vgpu(6000), job="low", on="a", annotations=held(f"GPU-a-{i},NVIDIA,6000,0:"))
        for i in range(2)
    ]
    urgent = {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": "urgent"},
        "value": 100,
    }
    world = world_of(
        text,
        urgent,
        vgpu_node("a"),
        group("low", 1, phase="Running"),
        *low,
        card_pod("huge", vgpu(9000), priority="urgent"),
        card_pod("high", vgpu(7000), priority="urgent"),
    )
    result = world.step()
    assert len(result.evicted) == 1
    assert result.pipelined == {"default/high": "a"}
    assert world.step().binds == {"default/high": "a"}


def test_a_node_whose_cards_cannot_be_read_has_none_and_an_event_says_why() -> None:
    bad = vgpu_node("bad", "GPU-0,10,8000:")
    world = world_of(VGPU, bad, vgpu_node("a"), card_pod("p", vgpu(1000)))
    result = world.step()
    assert result.binds == {"default/p": "a"}
    (event,) = [
        decision for decision in result.decisions if isinstance(decision, Event) and decision.kind == "Node"
    ]
    assert (event.name, event.reason) == ("bad", "BadCards")
    assert "'GPU-0,10,8000' has 3 fields" in event.message
    again = [each for each in world.step().decisions if isinstance(each, Event) and each.kind == "Node"]
    assert not again


def test_pods_without_parts_of_cards_are_not_evaluated() -> None:
    world = world_of(VGPU, vgpu_node("a"))
    world.job("plain", pods=1, cpu=1)
    world.step()
    shape = world.task("plain-0").shape
    assert world.cluster.ledgers_of(shape) == ()
    assert world.plugin("deviceshare").shape_key(world.task("plain-0")) == ()


def test_the_status_of_a_queue_counts_what_was_given_on_all_cards() -> None:
    """A container that asks for 1000 MiB on each of two cards requests 1000 and was given 2000."""
    world = world_of(VGPU, vgpu_node("a"), card_pod("p", vgpu(1000, 10, number=2)))
    world.step()
    statuses = [each for each in world.step().decisions if isinstance(each, QueueStatus)]
    (allocated,) = [status.allocated for status in statuses if status.name == "default"] or [
        world.cluster.queues["default"].reported or {}
    ]
    assert (allocated["volcano.sh/vgpu-memory"], allocated["volcano.sh/vgpu-cores"]) == ("2k", "20")
    assert allocated["volcano.sh/vgpu-number"] == "2"


def test_a_pod_that_lists_thousands_of_cards_waits_and_says_so() -> None:
    lists = {"volcano.sh/vgpu-use-gpuuuid": ",".join(f"GPU-{i}" for i in range(5000))}
    world = world_of(
        VGPU, vgpu_node("a"), card_pod("p", vgpu(1000), annotations=lists), card_pod("q", vgpu(1))
    )
    result = world.step()
    assert result.binds == {"default/q": "a"}
    assert "annotations list 5000 uuids and types of cards, more than 256" in result.why("p")


def test_tasks_whose_requests_are_what_they_were_given_leave_nothing_to_correct() -> None:
    world = world_of(
        VGPU, vgpu_node("a"), group("g", 1), *(card_pod(f"g-{i}", vgpu(500), job="g") for i in range(3))
    )
    world.step(2)
    assert world.cluster.cards.corrections == {}
    for i in range(3):
        world.finish(f"g-{i}")
    assert world.cluster.cards.corrections == {}
    assert world.cluster.cards.nodes["a"]["hamivgpu"].now.memory == [0, 0]


def test_a_placement_looks_at_the_cards_of_its_node_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    fits: list[str] = []
    fit = VgpuRequest.fit

    def counted(self: VgpuRequest, *arguments: Any) -> Any:
        fits.append(arguments[0].cards[0].uuid)
        return fit(self, *arguments)

    monkeypatch.setattr(VgpuRequest, "fit", counted)
    nodes = [vgpu_node(f"n{i}", card(f"GPU-{i}")) for i in range(20)]
    world = world_of(VGPU, *nodes, *(card_pod(f"p{i}", vgpu(5000)) for i in range(10)))
    assert len(world.step().binds) == 10
    assert len(fits) <= 20 + 4 * 10
    world.step()
    fits.clear()
    world.step()
    assert fits == []
