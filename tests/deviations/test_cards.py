"""Parts of GPUs and NPUs where we differ from Volcano: docs/deviations.md, one test per row."""

from __future__ import annotations

from stromboli.testing import World
from tests.deviations.test_requirements import run_case
from tests.manifests import node
from tests.plugins.deviceshare.card_worlds import (
    card,
    card_pod,
    card_policy,
    held,
    mig_config,
    shares_of,
    vgpu,
    vgpu_node,
    world_of,
)

VGPU = card_policy(VGPUEnable=True)


def mig_world(*pods: list[dict[str, object]], policy: str = VGPU) -> World:
    """A node with one MIG card of 40 GiB: 4 slots of 10 GiB, or 2 of 20 GiB and 1 of 10 GiB."""
    return world_of(policy, mig_config(), vgpu_node("a", card("GPU-0", 40960, mode="mig", count=7)), *pods)


def test_a_gang_that_is_given_up_gives_its_cards_back_at_once() -> None:
    """Volcano keeps them for the cycle (wart devices/vgpu-discarded-gang-keeps-the-cards)."""
    assert run_case("devices/vgpu-discarded-gang-keeps-the-cards").step().bound_per_job == {
        "default/next": 1,
        "default/small": 1,
    }


def test_two_pods_of_a_cycle_get_different_slots() -> None:
    world = mig_world(card_pod("p", vgpu(10000)), card_pod("q", vgpu(10000)))
    world.step()
    assert [shares_of(world.task(name)) for name in "pq"] == [["GPU-0[small-0]"], ["GPU-0[small-1]"]]


def test_an_unhealthy_card_is_not_given_out() -> None:
    """Volcano does not look (wart devices2/vgpu-sick-card-is-used)."""
    world = run_case("devices2/vgpu-sick-card-is-used")
    result = world.step()
    assert result.binds == {}
    assert "node(s) had unhealthy cards" in result.why("j-w-0")


def test_shares_of_a_leaving_pod_are_promised_and_not_given() -> None:
    leaving = card_pod("old", vgpu(6000), on="a", annotations=held("GPU-0,NVIDIA,6000,0:"))
    leaving[1]["metadata"]["deletionTimestamp"] = "2026-11-01T11:59:00Z"
    world = world_of(VGPU, vgpu_node("a", card("GPU-0")), leaving, card_pod("p", vgpu(5000)))
    result = world.step()
    assert (result.binds, result.pipelined) == ({}, {"default/p": "a"})


def test_a_free_slot_of_another_size_is_given_out() -> None:
    running = card_pod("old", vgpu(20000), on="a", annotations=held("GPU-0[mixed-0],NVIDIA,20000,0:"))
    world = mig_world(running, card_pod("p", vgpu(10000)))
    world.step()
    assert shares_of(world.task("p")) == ["GPU-0[mixed-2]"]


def test_an_empty_card_takes_another_geometry() -> None:
    running = card_pod("old", vgpu(10000), on="a", annotations=held("GPU-0[small-3],NVIDIA,10000,0:"))
    world = mig_world(running, card_pod("p", vgpu(20000)))
    assert world.step().binds == {}
    world.finish("old")
    assert world.step().binds == {"default/p": "a"}
    assert shares_of(world.task("p")) == ["GPU-0[mixed-0]"]


def test_two_containers_on_a_card_both_count() -> None:
    ids = "GPU-0,NVIDIA,3000,0:;GPU-0,NVIDIA,3000,0:"
    running = card_pod("old", vgpu(3000), vgpu(3000), on="a", annotations=held(ids))
    world = world_of(VGPU, vgpu_node("a", card("GPU-0")), running, card_pod("p", vgpu(4000)))
    assert world.step().binds == {}


def test_cards_are_given_out_without_predicates() -> None:
    world = world_of(VGPU, vgpu_node("a", card("GPU-0")), *(card_pod(name, vgpu(5000)) for name in "pq"))
    assert len(world.step().binds) == 1
    assert shares_of(world.task("p")) == ["GPU-0"]


def test_a_node_that_registered_no_cards_takes_no_pod_with_parts_of_cards() -> None:
    sizes = {"volcano.sh/vgpu-number": 10, "volcano.sh/vgpu-memory": 10**6, "volcano.sh/vgpu-cores": 100}
    world = world_of(VGPU, node("a", cpu=64, **sizes), card_pod("p", vgpu(1000)))
    result = world.step()
    assert result.binds == {}
    assert "had registered no hamivgpu cards" in result.why("p")


def test_vgpu_resources_are_ordinary_ones_where_vgpus_are_off_and_no_node_registers_cards() -> None:
    sizes = {"volcano.sh/vgpu-number": 1, "volcano.sh/vgpu-memory": 1000}
    policy = card_policy(plugins="gang predicates", GPUSharingEnable=True)
    world = world_of(policy, vgpu_node("a", card("GPU-0")), card_pod("p", vgpu(1000)))
    assert "volcano.sh/vgpu-number is not shared out" in world.step().why("p")
    assert world.add(node("a", cpu=64, **sizes)).step().binds == {"default/p": "a"}


def test_a_pod_waits_whose_kind_of_sharing_is_off() -> None:
    limits = {"volcano.sh/gpu-memory": 100}
    world = world_of(VGPU, vgpu_node("a", **limits), card_pod("p", limits))
    result = world.step()
    assert result.binds == {}
    assert "volcano.sh/gpu-memory is not shared out" in result.why("p")
