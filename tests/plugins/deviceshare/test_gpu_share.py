"""The older way to share GPUs: memory of one card, or a number of whole cards."""

from __future__ import annotations

from typing import Any

from stromboli.engine.decisions import Bind
from stromboli.model.cards.pod_cards import CardGrant
from stromboli.testing.world import NOON
from tests.manifests import Manifest, node
from tests.plugins.deviceshare.card_worlds import card_pod, card_policy, shares_of, world_of

MEMORY, NUMBER = "volcano.sh/gpu-memory", "volcano.sh/gpu-number"
SHARING, NUMBERS = card_policy(GPUSharingEnable=True), card_policy(GPUNumberEnable=True)


def gpu_node(name: str, cards: int = 2, memory: int = 16000, **more: Any) -> Manifest:
    return node(name, **{"cpu": 64, MEMORY: memory, NUMBER: cards}, **more)


def test_the_lowest_card_with_enough_memory_is_taken() -> None:
    pods = [card_pod(name, {MEMORY: memory}) for name, memory in (("p", 7000), ("q", 6000), ("r", 1000))]
    world = world_of(SHARING, gpu_node("a"), *pods)
    world.step()
    assert [shares_of(world.task(name)) for name in "pqr"] == [["0"], ["1"], ["0"]]


def test_the_bind_says_which_cards_and_when() -> None:
    world = world_of(NUMBERS, gpu_node("a", 3), card_pod("p", {NUMBER: 2}))
    (bind,) = [decision for decision in world.step().decisions if isinstance(decision, Bind)]
    (grant,) = bind.grants
    assert isinstance(grant, CardGrant)
    assert dict(grant.annotations) == {
        "volcano.sh/predicate-time": str(int(NOON * 10**9)),
        "volcano.sh/gpu-index": "0,1",
    }


def test_whole_cards_are_those_without_shares() -> None:
    running = card_pod("old", {NUMBER: 1}, on="a", annotations={"volcano.sh/gpu-index": "1"})
    world = world_of(
        NUMBERS, gpu_node("a", 3), running, card_pod("p", {NUMBER: 2}), card_pod("q", {NUMBER: 1})
    )
    result = world.step()
    assert shares_of(world.task("p")) == ["0", "2"]
    assert "fewer idle cards than 1 of volcano.sh/gpu-number" in result.why(
        "q"
    ) or "Insufficient" in result.why("q")


def test_unhealthy_cards_are_left_out() -> None:
    bad = {"volcano.sh/gpu-unhealthy-ids": "0"}
    world = world_of(SHARING, gpu_node("a", annotations=bad), card_pod("p", {MEMORY: 100}))
    world.step()
    assert shares_of(world.task("p")) == ["1"]


def test_the_largest_init_container_counts_if_it_asks_for_more() -> None:
    first = {"name": "first", "resources": {"limits": {MEMORY: 8001}, "requests": {MEMORY: 8001}}}
    world = world_of(SHARING, gpu_node("a"), card_pod("p", {MEMORY: 100}, initContainers=[first]))
    result = world.step()
    assert result.binds == {}
    assert "no card with 8001 of volcano.sh/gpu-memory free" in result.why("p")


def test_finished_pods_hold_nothing() -> None:
    running = card_pod("old", {MEMORY: 8000}, on="a", annotations={"volcano.sh/gpu-index": "0"})
    world = world_of(SHARING, gpu_node("a", 1, 8000), running, card_pod("p", {MEMORY: 8000}))
    assert world.step().binds == {}
    world.finish("old")
    assert world.step().binds == {"default/p": "a"}
