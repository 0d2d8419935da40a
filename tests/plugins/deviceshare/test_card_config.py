"""The ConfigMap of the device plugin: names of resources, percentages, MIG geometries, factors."""

from __future__ import annotations

from stromboli.engine.decisions import Event
from stromboli.model.cards.gpu_columns import GpuDemands
from tests.plugins.deviceshare.card_worlds import (
    card,
    card_pod,
    card_policy,
    mig_config,
    shares_of,
    vgpu,
    vgpu_node,
    world_of,
)

VGPU = card_policy(VGPUEnable=True)


def test_percentages_of_memory_count_where_the_configuration_names_them() -> None:
    percent = "volcano.sh/vgpu-memory-percentage"
    config = mig_config(f"nvidia: {{resourceMemoryPercentageName: {percent}}}")
    limits = {"volcano.sh/vgpu-number": 1, percent: 30}
    node = vgpu_node("a", card("GPU-0", 8001), **{percent: 1000})
    world = world_of(VGPU, config, node, card_pod("p", limits))
    world.step()
    ((share,),) = world.task("p").grants[0].containers  # type: ignore[attr-defined]
    assert share.memory == 2400


def test_the_demand_on_gpus_is_what_the_pod_gets() -> None:
    """A percentage of 0 leaves the requested memory out."""
    percent = "volcano.sh/vgpu-memory-percentage"
    config = mig_config(f"nvidia: {{resourceMemoryPercentageName: {percent}}}")
    node = vgpu_node("a", card("GPU-0", 8000), **{percent: 1000})
    world = world_of(VGPU, config, node, card_pod("p", {**vgpu(3000), percent: 0}))
    world.step()
    ((share,),) = world.task("p").grants[0].containers  # type: ignore[attr-defined]
    demand = GpuDemands(world.cluster, "nvidia.com/gpu").of(world.task("p"))
    assert (share.memory, demand.gpus, demand.memory) == (0, 1, 0)


def test_without_a_name_for_percentages_they_are_not_looked_at() -> None:
    """As in Volcano: without memory the pod gets all of the card."""
    percent = "volcano.sh/vgpu-memory-percentage"
    node = vgpu_node("a", **{percent: 1000})
    world = world_of(VGPU, node, card_pod("p", {"volcano.sh/vgpu-number": 1, percent: 30}))
    world.step()
    ((share,),) = world.task("p").grants[0].containers  # type: ignore[attr-defined]
    assert share.memory == 8000


def test_a_factor_makes_slots_of_units_that_pods_ask_for() -> None:
    """Cards register their memory, and pods ask for it, in units of 10 MiB; geometries are in MiB."""
    text = mig_config()["data"]["device-config.yaml"].replace("nvidia:", "nvidia:\n  gpuMemoryFactor: 10")
    node = vgpu_node("a", card("GPU-0", 4096, mode="mig"))
    world = world_of(VGPU, mig_config(text), node, card_pod("p", vgpu(1500)))
    world.step()
    assert shares_of(world.task("p")) == ["GPU-0[mixed-0]"]
    assert world.cluster.cards.nodes["a"]["hamivgpu"].now.memory == [2048]


def test_a_config_map_that_changes_is_read_again_and_a_bad_one_is_reported() -> None:
    node = vgpu_node("a", card("GPU-0", 40960, mode="mig"))
    world = world_of(VGPU, node, card_pod("p", vgpu(1000)))
    world.step()
    assert shares_of(world.task("p")) == ["GPU-0"]  # without a geometry the card is shared by software
    world.add(mig_config("nvidia: ["))
    (event,) = [
        each for each in world.step().decisions if isinstance(each, Event) and each.kind == "ConfigMap"
    ]
    assert (event.namespace, event.name) == ("kube-system", "volcano-vgpu-device-config")
    assert "not YAML" in event.message
    assert event.message.endswith("the built-in configuration is used")
    world.add(mig_config(), *card_pod("q", vgpu(20000), annotations={"volcano.sh/vgpu-mode": "mig"}))
    world.step()
    assert shares_of(world.task("q")) == ["GPU-0[mixed-0]"]


def test_other_resources_may_be_parts_of_cards() -> None:
    config = mig_config(
        "nvidia: {resourceCountName: nvidia.com/gpu, resourceMemoryName: nvidia.com/gpumem, resourceCoreName: x.y/z}"
    )
    limits = {"nvidia.com/gpu": 1, "nvidia.com/gpumem": 5000}
    node = vgpu_node("a", **{"nvidia.com/gpu": 20, "nvidia.com/gpumem": 16000})
    world = world_of(VGPU, node, config, *(card_pod(name, limits) for name in "pqr"))
    result = world.step()
    assert len(result.binds) == 2
    assert "no card with 5000 of nvidia.com/gpumem free" in result.why("r")
