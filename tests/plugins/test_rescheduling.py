"""Evictions from busy nodes: when they are due, while idle nodes have capacity, the lowest quality of service first."""

from __future__ import annotations

from typing import Any

import pytest

from stromboli.engine.catalog import Action
from stromboli.model.node_usage import NodeUsage
from stromboli.testing import World
from stromboli.testing.world import NOON
from tests.manifests import Manifest, group, node, pod, policy

GB = 10**9


def make_world(
    measured: dict[str, tuple[float, float]],
    thresholds: dict[str, int] | None = None,
    targets: dict[str, int] | None = None,
    actions: str = "shuffle",
    **arguments: Any,
) -> World:
    """Nodes of ten cores and 10 GB; it is time to look."""
    params = {
        "thresholds": thresholds or {"cpu": 20, "memory": 20},
        "targetThresholds": targets or {"cpu": 50, "memory": 50},
    }
    given = {
        "metricsPeriod": "10m",
        "strategies": [{"name": "lowNodeUtilization", "params": params}],
        **arguments,
    }
    world = World(policy=policy(actions, ("rescheduling", given)))
    world.add(*(node(name, cpu="10", memory=str(10 * GB)) for name in measured), group("j", phase="Running"))
    world.cluster.usage = {name: NodeUsage(cpu, memory, NOON) for name, (cpu, memory) in measured.items()}
    world.cluster.memory["rescheduling"] = {"last": NOON - 301}
    return world


def evicted(world: World, now: float = NOON) -> list[str]:
    return [decision.name for decision in world.step(now=now).decisions if type(decision).__name__ == "Evict"]


def pods(count: int, on: str, cpu: int = 0, **requests: str) -> list[Manifest]:
    return [pod(f"{on}-w-{index}", "j", on=on, cpu=cpu, **requests) for index in range(count)]


BUSY = {"hot": (80.0, 10.0), "cold": (10.0, 10.0)}


def test_pods_leave_until_the_node_is_below_its_target() -> None:
    # 80 % less 10 % per pod of one core: at 50 % it is not below yet, so four go
    assert len(evicted(make_world(BUSY).add(*pods(8, "hot", cpu=1)))) == 4


def test_no_more_pods_are_evicted_than_idle_nodes_have_capacity_for() -> None:
    # the idle node has 50 % - 30 % = 2 cores of room: after two pods it is exactly zero
    world = make_world({"hot": (80, 10), "cold": (30, 10)}, thresholds={"cpu": 40, "memory": 20})
    assert len(evicted(world.add(*pods(8, "hot", cpu=1)))) == 2


def test_capacity_below_zero_stops_no_eviction_as_in_volcano() -> None:
    world = make_world({"hot": (80, 10), "cold": (35, 10)}, thresholds={"cpu": 40, "memory": 20})
    assert len(evicted(world.add(*pods(8, "hot", cpu=1)))) == 4


def test_memory_makes_a_node_busy_too() -> None:
    world = make_world({"hot": (10, 80), "cold": (10, 10)})
    assert len(evicted(world.add(*pods(8, "hot", memory=str(GB))))) == 4


@pytest.mark.parametrize(
    "measured",
    [
        {"a": (30.0, 30.0), "b": (80.0, 30.0)},  # none is idle
        {"a": (10.0, 10.0), "b": (19.0, 19.0)},  # all are
        {"a": (10.0, 10.0), "b": (50.0, 50.0)},  # none is busy: at the target is not above
        {},
    ],
    ids=str,
)
def test_without_idle_and_busy_nodes_no_pod_moves(measured: dict[str, tuple[float, float]]) -> None:
    assert evicted(make_world(measured).add(*pods(4, "b", cpu=1))) == []


def test_a_node_closed_to_pods_is_not_idle() -> None:
    world = make_world(BUSY)
    closed = node("cold", cpu="10", memory=str(10 * GB))
    closed["spec"] = {"unschedulable": True}
    assert evicted(world.add(closed, *pods(8, "hot", cpu=1))) == []


def test_a_node_of_which_nothing_is_known_is_neither_idle_nor_busy() -> None:
    world = make_world(BUSY).add(*pods(8, "hot", cpu=1))
    world.cluster.usage = {"hot": NodeUsage(80, 10, NOON)}
    assert evicted(world) == []
    world = make_world(BUSY).add(*pods(8, "hot", cpu=1))
    assert evicted(world, NOON + 301) == [], "measurements that old say nothing"


def test_the_busiest_node_is_relieved_first() -> None:
    # four cores of room: four pods of the fuller node, none of the other
    world = make_world({"warm": (60, 10), "hot": (90, 10), "cold": (10, 10)})
    world.add(*pods(8, "warm", cpu=1), *pods(8, "hot", cpu=1))
    assert {name[:3] for name in evicted(world)} == {"hot"}


def promised(name: str, priority: int, requests: dict[str, str], limits: dict[str, str]) -> Manifest:
    manifest = pod(name, "j", on="hot", cpu=0)
    manifest["spec"]["priority"] = priority
    manifest["spec"]["containers"][0]["resources"] = {"requests": requests, "limits": limits}
    return manifest


def test_lower_priority_is_evicted_first_then_lower_quality_of_service() -> None:
    both = {"cpu": "1", "memory": str(GB)}
    world = make_world({"hot": (71, 10), "cold": (10, 10)}).add(
        promised("guaranteed", 5, both, both),
        promised("burstable", 5, both, {}),
        promised("best-effort", 5, {}, {}),
        promised("important", 9, both, {}),
        promised("lowly", 1, both, both),
    )
    order: list[str] = []
    plugin = world.plugin("rescheduling")
    world.engine.actions = [
        Action(
            "look",
            lambda session: order.extend(
                t.name for t in plugin.victim_tasks(list(session.cluster.tasks.values()))
            ),
        )
    ]
    world.step()
    # 71 -> 61 -> 61 (nothing requested) -> 51 -> 41
    assert order == ["lowly", "best-effort", "burstable", "guaranteed"]


def test_a_pod_of_the_same_name_elsewhere_stays() -> None:
    world = make_world(BUSY).add(*pods(1, "hot", cpu=1), group("k", phase="Running", namespace="other"))
    twin = pod("hot-w-0", "k", on="cold", cpu=1)
    twin["metadata"] |= {"namespace": "other", "uid": "twin"}
    world.add(twin)
    outcome = world.step()
    assert [
        (decision.namespace, decision.node)
        for decision in outcome.decisions
        if type(decision).__name__ == "Evict"
    ] == [("default", "hot")]


# -- when it is time


def test_it_looks_once_per_interval_and_first_after_one() -> None:
    world = make_world(BUSY, interval="1m").add(*pods(8, "hot", cpu=1))
    world.cluster.memory.clear()
    assert evicted(world) == []
    assert world.cluster.memory["rescheduling"] == {"last": NOON}
    assert evicted(world, NOON + 60) == []
    assert len(evicted(world, NOON + 61)) == 4
    assert world.cluster.memory["rescheduling"] == {"last": NOON + 61}
    assert evicted(world, NOON + 62) == []


@pytest.mark.parametrize("last", [None, "x", {"last": "x"}, {"last": NOON + 10**6}, [], {}])
def test_an_invalid_memory_is_ignored(last: Any) -> None:
    world = make_world(BUSY, interval="1m").add(*pods(8, "hot", cpu=1))
    world.cluster.memory["rescheduling"] = last
    assert evicted(world) == []
    assert world.cluster.memory["rescheduling"] == {"last": NOON}


def test_a_lost_cycle_did_not_look() -> None:
    world = make_world(BUSY)
    before = dict(world.cluster.memory)

    def fail(session: Any) -> None:
        raise ZeroDivisionError

    world.engine.actions = [Action("fail", fail)]
    assert world.engine.cycle(world.cluster, NOON).lost is not None
    assert world.cluster.memory == before
    world.cluster.memory.clear()
    assert world.engine.cycle(world.cluster, NOON).lost is not None
    assert world.cluster.memory == {}


def test_only_the_period_that_is_measured_moves_anybody() -> None:
    assert evicted(make_world(BUSY, metricsPeriod="5m").add(*pods(8, "hot", cpu=1))) == []


def test_an_interval_that_is_none_is_five_minutes() -> None:
    world = make_world(BUSY, interval="soon").add(*pods(8, "hot", cpu=1))
    world.cluster.memory["rescheduling"] = {"last": NOON - 300}
    assert evicted(world) == []
    assert len(evicted(world, NOON + 1)) == 4


def test_an_unknown_strategy_is_a_warning_and_does_nothing() -> None:
    world = make_world(BUSY, strategies=[{"name": "highNodeUtilization"}]).add(*pods(8, "hot", cpu=1))
    assert any("must be lowNodeUtilization" in text for text in world.engine.policy.warnings)
    assert evicted(world) == []


def test_thresholds_that_are_not_given_are_a_hundred() -> None:
    # every node is below 100 %, so all are idle
    assert (
        evicted(make_world(BUSY, strategies=[{"name": "lowNodeUtilization"}]).add(*pods(8, "hot", cpu=1)))
        == []
    )
