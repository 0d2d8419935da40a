"""Measured load: which nodes take no pods, scores computed by hand, and the expected load of new pods."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stromboli.engine.catalog import Action
from stromboli.engine.placement.node_functions import Nodes
from stromboli.engine.session import Session
from stromboli.engine.transaction import EvictionReason
from stromboli.model.cluster import Cluster, Dirty
from stromboli.model.node_usage import NodeUsage
from stromboli.model.status import Status
from stromboli.plugins.usage import Load, Usage, UsageArguments
from stromboli.policy.arguments import parse_arguments
from stromboli.testing import World
from stromboli.testing.world import NOON
from tests.manifests import group, node, pod, policy
from tests.number_of_examples import scaled

CPU_BUSY = "the CPU load of the node exceeds the upper limit."
MEMORY_BUSY = "the memory load of the node exceeds the upper limit."
Measured = dict[str, tuple[float, float]]


def measure(cluster: Cluster, measured: Measured, at: float = NOON) -> None:
    cluster.usage = {name: NodeUsage(cpu, memory, at) for name, (cpu, memory) in measured.items()}


def make_world(measured: Measured, at: float = NOON, text: str = "", **arguments: Any) -> World:
    """Nodes of ten cores and 100Gi with a waiting pod `new`."""
    world = World(policy=text or policy("backfill", ("usage", arguments)))
    world.add(*(node(name, cpu="10", memory="100Gi") for name in measured), group("j"))
    world.add(pod("new", "j", cpu="1"))
    measure(world.cluster, measured, at)
    return world


def scored(world: World, now: float = NOON) -> dict[str, float]:
    world.step(now=now)
    return {name: round(score, 6) for name, score in world.scores("usage", "new").items()}


# -- scores by hand


def test_a_score_is_what_is_left_of_cpu_and_memory() -> None:
    assert scored(make_world({"a": (30, 50), "b": (0, 0), "c": (100, 100)})) == {"a": 300, "b": 500, "c": 0}


def test_weights_count() -> None:
    arguments = {"usage.weight": 2, "cpu.weight": 3, "memory.weight": 1}
    assert scored(make_world({"a": (30, 50)}, **arguments)) == {"a": 130}


def test_without_any_weight_nothing_is_scored() -> None:
    world = make_world({"a": (30, 50)}, **{"cpu.weight": 0, "memory.weight": 0})
    world.step()
    assert list(world.plugin("usage").node_scores(world.task("new"))) == []


def test_a_measurement_older_than_five_minutes_scores_nothing() -> None:
    assert scored(make_world({"a": (30, 50)}), NOON + 300) == {"a": 300}
    assert scored(make_world({"a": (30, 50)}), NOON + 301) == {"a": 0}


def test_a_node_that_was_not_measured_scores_nothing() -> None:
    world = make_world({"a": (30, 50), "b": (0, 0)})
    measure(world.cluster, {"a": (30, 50), "gone": (0, 0)})
    assert scored(world) == {"a": 300, "b": 0}


def test_a_node_is_as_large_as_its_capacity_says() -> None:
    world = make_world({"a": (30, 50)})
    large = node("a", cpu="10", memory="100Gi")
    large["status"]["capacity"] = {"cpu": "20", "memory": "100Gi", "pods": "110"}
    world.add(large, pod("fresh", "j", on="a", cpu="2"))
    assert scored(world) == {"a": round((1 - (6000 + 1400) / 20000 + 0.5) / 2 * 500, 6)}


def test_a_node_whose_capacity_alone_changed_is_scored_by_the_new_one() -> None:
    small = node("a", cpu="10", memory="100Gi")
    small["metadata"]["creationTimestamp"] = "2026-01-01T00:00:00Z"
    world = make_world({"a": (30, 50)}).add(small, pod("fresh", "j", on="a", cpu="2"))
    scored(world)
    world.add({**small, "status": {**small["status"], "capacity": {"cpu": "20", "memory": "100Gi"}}})
    assert scored(world) == {"a": round((1 - (6000 + 1400) / 20000 + 0.5) / 2 * 500, 6)}


# -- load on its way


def unmeasured(world: World, now: float = NOON) -> Load:
    world.step(now=now)
    load: Load = world.plugin("usage").unmeasured.on(world.cluster.nodes["a"])
    return load


def with_pod(measured: tuple[float, float], spec: dict[str, Any], **estimator: Any) -> World:
    world = make_world({"a": measured}, estimator=estimator)
    fresh = pod("fresh", "j", on="a", cpu=0)
    fresh["spec"]["containers"][0]["resources"] = spec
    return world.add(fresh)


@pytest.mark.parametrize(
    ("estimator", "spec", "expected"),
    [
        ({}, {"requests": {"cpu": "1", "memory": "1000"}}, Load(700, 700)),
        ({"request_ratio": 0.5}, {"requests": {"cpu": "1"}}, Load(500, 0)),
        ({"burst_ratio": 0.5}, {"requests": {"cpu": "1"}, "limits": {"cpu": "3"}}, Load(1700, 0)),
        (
            {"request_ratio": 1, "burst_ratio": 1},
            {"requests": {"cpu": "1"}, "limits": {"cpu": "3"}},
            Load(3000, 0),
        ),
        ({"burst_ratio": 1}, {"requests": {"cpu": "1"}}, Load(700, 0)),
        ({}, {}, Load(250, 200 * 1024**2)),
        ({"be_cpu": 100, "be_mem": 3}, {}, Load(100, 3 * 1024**2)),
        ({"be_cpu": "2", "be_mem": "1Gi"}, {}, Load(2000, 1024**3)),
        ({}, {"requests": {"nvidia.com/gpu": "1"}}, Load(0, 0)),
    ],
)
def test_what_a_new_pod_will_use(estimator: dict[str, Any], spec: dict[str, Any], expected: Load) -> None:
    assert unmeasured(with_pod((0, 0), spec, **estimator)) == expected


@pytest.mark.parametrize(
    ("estimator", "spec", "expected"),
    [
        ({}, {"requests": {"cpu": "1"}}, Load(840, 0)),
        ({"risk_factor": 2}, {"requests": {"cpu": "1"}}, Load(1000, 0)),  # never more than its limit
        ({"risk_factor": 2}, {"requests": {"cpu": "1"}, "limits": {"cpu": "3"}}, Load(1400, 0)),
        ({"risk_factor": 2}, {}, Load(500, 400 * 1024**2)),
        ({"risk_threshold": 0.61}, {"requests": {"cpu": "1"}}, Load(700, 0)),
    ],
)
def test_on_a_full_node_more_is_expected(
    estimator: dict[str, Any], spec: dict[str, Any], expected: Load
) -> None:
    assert unmeasured(with_pod((60, 60), spec, **estimator)) == expected


def test_what_is_on_its_way_counts_for_the_risk_of_the_next() -> None:
    world = make_world({"a": (58, 58)})
    world.add(pod("p-w-0", "j", on="a", cpu="10"), pod("p-w-1", "j", on="a", cpu="1"))
    assert unmeasured(world) == Load(7000 + 840, 0)
    assert scored(world) == {"a": round((1 - 1 + 0.42) / 2 * 500, 6)}, "cpu is not fuller than full"


def test_a_pod_counts_until_measurements_can_show_it() -> None:
    world = make_world({"a": (10, 10)})
    fresh = pod("fresh", "j", on="a", cpu="1")
    fresh["status"]["startTime"] = "2026-11-01T12:00:00Z"  # NOON
    world.add(fresh)
    assert unmeasured(world, NOON + 29) == Load(700, 0)
    assert unmeasured(world, NOON + 30) == Load(0, 0)


def test_the_interval_of_the_policy_says_how_long_that_is() -> None:
    text = 'actions: "backfill"\ntiers: [{plugins: [{name: usage}]}]\nmetrics: {interval: 2m}\n'
    world = make_world({"a": (10, 10)}, text=text)
    fresh = pod("fresh", "j", on="a", cpu="1")
    fresh["status"]["startTime"] = "2026-11-01T12:00:00Z"
    world.add(fresh)
    assert unmeasured(world, NOON + 119) == Load(700, 0)
    assert unmeasured(world, NOON + 120) == Load(0, 0)


def test_bound_pods_of_any_scheduler_are_on_their_way() -> None:
    world = make_world({"a": (10, 10)})
    other = pod("other", on="a", scheduler="default-scheduler", cpu="2")
    other["status"]["phase"] = "Pending"
    world.add(other)
    assert unmeasured(world) == Load(1400, 0)
    world.remove(other)
    assert unmeasured(world) == Load(0, 0)


def test_pods_placed_in_a_cycle_repel_the_next() -> None:
    world = World(nodes="a cpu=8,memory=16Gi; b cpu=8,memory=16Gi")
    measure(world.cluster, {"a": (50, 10), "b": (10, 10)}, world.rehearsal.now())
    world.job("j", pods=4, minimum=1, cpu=2, memory="1Gi")
    assert list(world.run("enqueue, allocate", "gang usage").binds.values()) == ["b", "b", "a", "b"]


# -- the filter


def test_busy_nodes_take_no_pod_and_evicting_does_not_help() -> None:
    world = World(nodes="a cpu=8; b cpu=8; c cpu=8")
    measure(world.cluster, {"a": (80.1, 0), "b": (80, 81), "c": (100, 100)}, world.rehearsal.now())
    world.job("j", pods=1, minimum=1, cpu=1)
    result = world.run("enqueue, allocate", "gang usage")
    assert result.binds == {}
    verdict = result.verdict("j-0")
    assert verdict is not None
    assert verdict.histogram() == {CPU_BUSY: 2, MEMORY_BUSY: 1}
    assert verdict.hopeless is not None
    assert verdict.hopeless.all()
    measure(world.cluster, {"a": (80.1, 0), "b": (80, 80), "c": (100, 100)}, world.rehearsal.now())
    assert world.step().binds == {"default/j-0": "b"}, "exactly at the threshold is not above"


def test_estimated_load_keeps_no_pod_away() -> None:
    world = World(nodes="a cpu=8")
    measure(world.cluster, {"a": (79, 0)}, world.rehearsal.now())
    world.job("j", pods=4, minimum=4, cpu=2)
    assert len(world.run("enqueue, allocate", "gang usage").binds) == 4


def test_old_measurements_keep_no_pod_away_and_the_filter_can_be_switched_off() -> None:
    world = World(nodes="a cpu=8")
    measure(world.cluster, {"a": (100, 100)}, world.rehearsal.now() - 299.5)
    world.job("j", pods=1, minimum=1, cpu=2)
    assert world.run("enqueue, allocate", "gang usage").binds == {}
    assert world.step().binds == {"default/j-0": "a"}, "a second later they are too old"
    world.job("k", pods=1, minimum=1, cpu=2)
    measure(world.cluster, {"a": (100, 100)}, world.rehearsal.now())
    off = 'actions: "enqueue, allocate"\ntiers: [{plugins: [{name: usage, enablePredicate: false}]}]'
    assert world.run(policy=off).binds == {"default/k-0": "a"}


def test_usage_from_a_file_reaches_the_plugin(tmp_path: Path) -> None:
    file = tmp_path / "usage.yaml"
    file.write_text("nodes:\n  a: {cpu: 95, memory: 5}\n  b: {cpu: 5, memory: 5}\n")
    world = World(nodes="a cpu=64; b cpu=8").job("j", pods=1, minimum=1, cpu=2)
    text = 'actions: "enqueue, allocate"\ntiers: [{plugins: [{name: usage}]}]\n'
    text += f'metrics: {{type: file, address: "{file}"}}\n'
    assert world.run(policy=text).binds == {"default/j-0": "b"}
    file.write_text("rubbish")
    world.job("k", pods=1, minimum=1, cpu=2).sleep(60)
    assert world.step().binds == {"default/k-0": "b"}, "the last good data stay in force"


# -- arguments


@pytest.mark.parametrize(
    "wrong",
    [
        {"usage.weight": -1},
        {"cpu.weight": -1},
        {"thresholds": {"cpu": 101}},
        {"thresholds": {"mem": -1}},
        {"estimator": {"request_ratio": 1.1}},
        {"estimator": {"burst_ratio": -0.1}},
        {"estimator": {"risk_threshold": 2}},
        {"estimator": {"risk_factor": 0.9}},
        {"estimator": {"be_cpu": -1}},
        {"estimator": {"be_cpu": "much"}},
        {"estimator": {"be_mem": "-1Gi"}},
        {"estimator": {"be_mem": 1.5}},
    ],
    ids=str,
)
def test_a_value_out_of_range_keeps_the_default(wrong: dict[str, Any]) -> None:
    arguments, problems = parse_arguments(UsageArguments, wrong)
    assert arguments == UsageArguments()
    assert len(problems) == 1


# -- what a trial does is taken back exactly, and what is kept is what would be world afresh


def snapshot(plugin: Usage) -> tuple[Any, ...]:
    return dict(plugin.unmeasured.nodes), dict(plugin.unmeasured.tasks), plugin._load.tolist()


def crowded(seed: int) -> World:
    chance = random.Random(seed)
    world = World(nodes="; ".join(f"n{index} cpu={chance.randint(2, 9)},memory=16Gi" for index in range(3)))
    measured = {f"n{index}": (chance.uniform(0, 100), chance.uniform(0, 100)) for index in range(3)}
    measure(world.cluster, measured, world.rehearsal.now())
    for index in range(chance.randint(1, 4)):
        world.job(f"j{index}", pods=chance.randint(1, 3), minimum=1, cpu=chance.choice([0, 0.3, 1, 1.7]))
    return world


def shaken(seen: list[bool], seed: int) -> Callable[[Session], None]:
    """Random trials inside trials, none of which lasts."""
    chance = random.Random(seed)

    def trial(session: Session, depth: int) -> None:
        plugin = next(plugin for plugin in session.rules.plugins if isinstance(plugin, Usage))
        before = snapshot(plugin)
        with session.statement() as statement:
            for _ in range(chance.randint(1, 8)):
                task = chance.choice(list(session.cluster.tasks.values()))
                target = chance.choice(session.cluster.columns.nodes)
                if task.status is Status.PENDING:
                    chance.choice([statement.allocate, statement.pipeline])(task, target)
                elif task.status in (Status.ALLOCATED, Status.PIPELINED) and chance.random() < 0.5:
                    statement.release(task)
                elif task.status in (Status.RUNNING, Status.BOUND):
                    statement.evict(task, EvictionReason("shake"))
                elif depth:
                    trial(session, depth - 1)
        seen.append(snapshot(plugin) == before)

    return lambda session: trial(session, 2)


@given(st.integers(0, 10**6))
@settings(max_examples=scaled(20), deadline=None)
def test_taking_moves_back_restores_the_load_exactly(seed: int) -> None:
    seen: list[bool] = []
    shake = Action("shake", shaken(seen, seed))
    world = crowded(seed)
    world.run("enqueue, shake, allocate, shake", "gang usage", action_functions=[shake])
    result = world.step(2)
    assert not result.lost
    assert len(seen) >= 6
    assert all(seen)


@given(st.integers(0, 10**6))
@settings(max_examples=scaled(20), deadline=None)
def test_kept_across_cycles_it_equals_one_made_afresh(seed: int) -> None:
    chance = random.Random(seed)
    same: list[tuple[Any, Any]] = []

    def compare(session: Session) -> None:
        kept = next(plugin for plugin in session.rules.plugins if isinstance(plugin, Usage))
        fresh = Usage(kept.arguments, kept.switches)
        fresh.session = session
        fresh.opening(session, Dirty())
        task, nodes = next(iter(session.cluster.tasks.values())), Nodes(session.cluster.columns)
        for plugin in (kept, fresh):
            checks = [check.passes.tolist() for check in plugin._checks(task, nodes)]
            same.append((snapshot(plugin), checks, plugin._score(task, nodes).tolist()))  # type: ignore[arg-type]

    world = crowded(seed)
    world.run("compare, enqueue, allocate", "gang usage", action_functions=[Action("compare", compare)])
    for turn in range(6):
        what = chance.random()
        running = [task for task in world.cluster.tasks.values() if task.status is Status.RUNNING]
        if what < 0.2:
            measure(world.cluster, {"n0": (chance.uniform(0, 100), 5), "n2": (99, 99)}, world.rehearsal.now())
        elif what < 0.4:
            world.job(f"k{turn}", pods=2, minimum=1, cpu=1)
        elif what < 0.6 and running:
            world.finish(chance.choice(running).key)
        elif what < 0.8:
            world.add(node(f"m{turn}", cpu="4"))
        else:
            world.sleep(chance.choice([1, 40, 400]))
        assert not world.step().lost
    assert len(same) == 14
    assert same[::2] == same[1::2]
