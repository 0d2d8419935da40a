"""`holdFor` and cards: what was cleared on a card for a task is granted to no other task."""

from __future__ import annotations

import json

import pytest

from stromboli.testing import World
from tests.manifests import Manifest, group
from tests.plugins.deviceshare.card_worlds import (
    card_pod,
    card_policy,
    held,
    shares_of,
    vgpu,
    vgpu_node,
    world_of,
)


def holding(hold: str) -> str:
    text = json.loads(card_policy("allocate, preempt", "priority gang conformance", VGPUEnable=True))
    text["configurations"] = [{"name": "preempt", "arguments": {"fewestVictims": True, "holdFor": hold}}]
    return json.dumps(text)


def priority(name: str, value: int) -> Manifest:
    meta = {"name": name}
    return {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": meta, "value": value}


def cleared(hold: str) -> World:
    """The last card of a node was cleared for the pod `new`; the first has 3000 of its 8000 MiB left."""
    world = world_of(
        holding(hold),
        priority("high", 9),
        priority("higher", 99),
        vgpu_node("a"),
        group("old", 0, phase="Running"),
        card_pod("old", vgpu(8000), job="old", on="a", annotations=held("GPU-a-1,NVIDIA,8000,0:")),
        card_pod("stays", vgpu(5000), on="a", priority="higher", annotations=held("GPU-a-0,NVIDIA,5000,0:")),
        card_pod("new", vgpu(8000), priority="high"),
    )
    assert world.step().evicted == ["default/old"]
    return world


@pytest.mark.parametrize(
    ("hold", "binds", "cards"),
    [
        ("5m", {"default/new": "a", "default/third": "a"}, ["GPU-a-0"]),
        ("0s", {"default/third": "a"}, ["GPU-a-1"]),
    ],
)
def test_a_more_urgent_pod_gets_another_card(hold: str, binds: dict[str, str], cards: list[str]) -> None:
    world = cleared(hold)
    world.add(*card_pod("third", vgpu(3000), priority="higher"))
    assert world.step().binds == binds
    assert shares_of(world.task("third")) == cards


def test_a_pod_that_fits_only_on_the_held_card_waits_with_that_reason() -> None:
    world = cleared("5m")
    world.add(*card_pod("third", vgpu(4000), priority="higher", preemptionPolicy="Never"))
    result = world.step()
    assert result.binds == {"default/new": "a"}
    assert shares_of(world.task("new")) == ["GPU-a-1"]
    assert "no card with enough beside what is held for other pods" in result.why("third")


def test_what_is_held_is_free_once_its_owner_is_deleted() -> None:
    world = cleared("5m")
    world.add(*card_pod("third", vgpu(4000), priority="higher"))
    world.remove(card_pod("new", vgpu(8000), priority="high")[1])
    assert world.step().binds == {"default/third": "a"}
