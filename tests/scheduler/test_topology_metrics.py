"""Metrics of tiers of HyperNodes."""

from __future__ import annotations

import pytest

from stromboli.model.topology.tier_occupancy import TierOccupancies
from stromboli.scheduler.node_metrics import PAUSE
from stromboli.scheduler.scheduler_metrics import SchedulerMetrics
from stromboli.testing import World
from tests.manifests import hyper_node, policy

POLICY = policy("enqueue, allocate", "gang | predicates network-topology-aware")
RACKS = [hyper_node("r1", 1, nodes=["a", "b"]), hyper_node("r2", 1, nodes=["c", "d"])]
GPUS = {"nvidia.com/gpu": 8}


class Story:
    def __init__(self) -> None:
        self.world = World("; ".join(f"{name} cpu=8,nvidia.com/gpu=8" for name in "abcd"), policy=POLICY)
        self.now = 0.0
        self.metrics = SchedulerMetrics(lambda: self.now)

    def cycle(self) -> set[str]:
        """What the page shows of topology after a cycle."""
        self.now += PAUSE
        self.metrics.cycle(self.world.step().outcome)
        lines = self.metrics.text().decode().splitlines()
        return {
            line.removeprefix("stromboli_topology_") for line in lines if line.startswith("stromboli_topo")
        }


def test_tiers_have_their_occupancy_and_the_largest_gang_that_fits() -> None:
    story = Story()
    story.world.add(*RACKS, hyper_node("top", 2, children=["r1", "r2"]))
    story.world.job(
        "j", pods=2, cpu=1, gpu=8, group={"networkTopology": {"mode": "hard", "highestTierAllowed": 1}}
    )
    story.world.job("small", cpu=1, gpu=4, running_on="c")
    shown = story.cycle()
    assert {
        'hyper_nodes{state="full",tier="1"} 1.0',
        'hyper_nodes{state="partly_free",tier="1"} 1.0',
        'hyper_nodes{state="free",tier="1"} 0.0',
        'occupancy_ratio{resource="nodes",tier="1"} 0.75',
        'occupancy_ratio{resource="gpus",tier="2"} 0.625',
        'largest_gang{tier="1",unit="nodes"} 1.0',
        'largest_gang{tier="1",unit="gpus"} 12.0',
        'largest_gang{tier="2",unit="gpus"} 12.0',
        'fragmentation_ratio{tier="1",unit="gpus"} 0.0',
        "left_out_hyper_nodes 0.0",
    } <= shown


def test_a_tier_that_is_gone_has_no_series_and_what_is_left_out_is_counted() -> None:
    story = Story()
    assert story.cycle() == {"left_out_hyper_nodes 0.0"}
    story.world.add(*RACKS, hyper_node("top", 2, children=["r1"]), hyper_node("other", 2, children=["r1"]))
    shown = story.cycle()
    assert "left_out_hyper_nodes 1.0" in shown
    assert not any('tier="2"' in line for line in shown)  # both are without nodes
    for manifest in (*RACKS, hyper_node("top"), hyper_node("other")):
        story.world.remove(manifest)
    assert story.cycle() == {"left_out_hyper_nodes 0.0"}


def test_a_quiet_cluster_is_not_looked_at_again(monkeypatch: pytest.MonkeyPatch) -> None:
    story = Story()
    story.world.add(*RACKS)
    story.cycle()
    first = story.cycle()
    looked: list[object] = []
    monkeypatch.setattr(TierOccupancies, "_look_at_nodes", lambda *_: looked.append(1))
    assert story.cycle() == first
    assert looked == []


def test_an_error_in_these_metrics_is_counted_and_ends_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(TierOccupancies, "current", lambda _: 1 / 0)
    story = Story()
    story.world.add(*RACKS)
    story.cycle()
    failures = 'stromboli_telemetry_failures_total{part="topology metrics"} 1.0'
    assert failures in story.metrics.text().decode()
