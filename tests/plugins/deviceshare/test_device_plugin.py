"""Real device plugins find the granted shares in the annotations."""

from __future__ import annotations

from tests.plugins.deviceshare.card_worlds import (
    card,
    card_pod,
    card_policy,
    mig_config,
    vgpu,
    vgpu_node,
    world_of,
)
from tests.plugins.deviceshare.device_plugin import Device, mig_slot, serve

VGPU = card_policy(VGPUEnable=True)


def test_each_pod_gets_its_cards_and_they_still_count_when_it_was_served() -> None:
    world = world_of(VGPU, vgpu_node("a"), card_pod("p", vgpu(3000, 30)), card_pod("q", vgpu(4000, number=2)))
    world.step(2)
    pods = {name: dict(world.task(name).annotations) for name in "pq"}
    assert serve(pods, "a", 1) == [Device("GPU-a-1", "NVIDIA", 3000, 30)]
    assert serve(pods, "a", 2) == [Device("GPU-a-1", "NVIDIA", 4000, 0), Device("GPU-a-0", "NVIDIA", 4000, 0)]
    assert {annotations["volcano.sh/bind-phase"] for annotations in pods.values()} == {"success"}
    for name, limits in (("p", vgpu(3000, 30)), ("q", vgpu(4000, number=2))):
        world.add(*card_pod(name, limits, on="a", annotations=pods[name]))
    cards = world.cluster.cards.nodes["a"]["hamivgpu"]
    assert (cards.now.memory, cards.now.sharers) == ([4000, 7000], [1, 2])


def test_containers_are_served_one_after_the_other() -> None:
    world = world_of(VGPU, vgpu_node("a"), card_pod("p", vgpu(1000), vgpu(2000)))
    world.step(2)
    pods = {"p": dict(world.task("p").annotations)}
    assert [device.memory for device in serve(pods, "a", 2)] == [1000]
    assert pods["p"]["volcano.sh/devices-to-allocate"] == ";GPU-a-1,NVIDIA,2000,0:"
    assert pods["p"]["volcano.sh/bind-phase"] == "allocating"


def test_the_name_of_a_slot_says_card_group_and_position() -> None:
    node = vgpu_node("a", card("GPU-0fc3eda5-e98b", 40960, mode="mig"))
    world = world_of(VGPU, mig_config(), node, card_pod("p", vgpu(20000)))
    world.step(2)
    (device,) = serve({"p": dict(world.task("p").annotations)}, "a", 1)
    assert mig_slot(device.uuid) == ("GPU-0fc3eda5-e98b", "mixed", 0)
    assert device.memory == 20000
