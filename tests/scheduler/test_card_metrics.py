"""Metrics of GPUs that are shared out follow their cards and the pods on them."""

from __future__ import annotations

from stromboli.scheduler.scheduler_metrics import SchedulerMetrics
from tests.manifests import node
from tests.plugins.deviceshare.card_worlds import card, card_pod, card_policy, held, vgpu, vgpu_node, world_of


def shown(metrics: SchedulerMetrics) -> dict[str, float]:
    """The series of cards, without the words that all have in common."""
    lines = metrics.text().decode().splitlines()
    series = [line.rpartition(" ") for line in lines if line.startswith("volcano_vgpu_device_")]
    return {name.removeprefix("volcano_vgpu_device_"): float(value) for name, _, value in series}


def test_every_card_and_every_pod_on_it_has_its_series_and_they_go_with_them() -> None:
    running = card_pod("old", vgpu(3000, 20), on="a", annotations=held("GPU-0,NVIDIA,3000,20:"))
    world = world_of(card_policy(VGPUEnable=True), vgpu_node("a", card("GPU-0")), running)
    world.step()
    metrics = SchedulerMetrics()
    cards = metrics._cards
    cards.update(world.cluster)
    assert shown(metrics) == {
        'shared_number{NodeName="a",devID="GPU-0"}': 1,
        'allocated_memory{NodeName="a",devID="GPU-0"}': 3000,
        'allocated_cores{NodeName="a",devID="GPU-0"}': 20,
        'memory_limit{NodeName="a",devID="GPU-0"}': 8000,
        'memory_allocation_for_a_certain_pod{NodeName="a",devID="GPU-0",podName="old"}': 3000,
        'core_allocation_for_a_certain_pod{NodeName="a",devID="GPU-0",podName="old"}': 20,
    }
    world.finish("old")
    cards.update(world.cluster)
    assert shown(metrics) == {
        'shared_number{NodeName="a",devID="GPU-0"}': 0,
        'allocated_memory{NodeName="a",devID="GPU-0"}': 0,
        'allocated_cores{NodeName="a",devID="GPU-0"}': 0,
        'memory_limit{NodeName="a",devID="GPU-0"}': 8000,
    }
    world.add(node("a"))
    cards.update(world.cluster)
    assert shown(metrics) == {}
