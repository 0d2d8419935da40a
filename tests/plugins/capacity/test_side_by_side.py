"""capacity without a hierarchy: limits of queues, their order, and admission (spec 03 7)."""

import pytest

from stromboli.model.amounts import UNLIMITED
from stromboli.model.dimensions import CPU, MEMORY, PODS
from stromboli.plugins.capacity.queue_tree import flat_queues
from stromboli.testing import World
from tests.plugins.capacity.policies import messages_about, policy, queue

GPU = 3
FLAT = policy(tree=False)
TOTAL = {CPU: 10_000, MEMORY: 100, PODS: 50, GPU: 8_000}


def test_a_queue_may_have_what_is_not_guaranteed_to_others_up_to_its_capability() -> None:
    mine = queue("mine", guarantee={CPU: 1_000}, capability={CPU: 0, MEMORY: 60})
    theirs = queue("theirs", guarantee={CPU: 3_000, GPU: 8_000})
    tree = flat_queues([mine, theirs, queue("free")], TOTAL)
    assert tree.of(mine).limit == {
        CPU: 7_000,
        MEMORY: 60,
        PODS: 50,
    }  # no gpu: all of it is guaranteed to others
    assert tree.of(theirs).limit == {CPU: 9_000, MEMORY: 100, PODS: 50, GPU: 8_000}


def test_deserved_is_held_down_to_the_limit_and_up_to_the_guarantee() -> None:
    greedy = queue("greedy", deserved={CPU: 99_000, MEMORY: 10}, guarantee={MEMORY: 30})
    assert flat_queues([greedy], TOTAL).of(greedy).deserved == {CPU: 10_000, MEMORY: 30}


def test_the_share_is_the_largest_part_of_what_is_deserved_and_one_where_nothing_is() -> None:
    some = queue("some", deserved={CPU: 4_000, MEMORY: 50}, held={CPU: 1_000, MEMORY: 25, GPU: 1_000})
    none = queue("none", held={CPU: 1_000})
    tree = flat_queues([some, none], TOTAL)
    assert tree.of(some).order_key == (0.5, False)
    assert tree.of(none).order_key == (1.0, True)


def test_a_limit_that_names_only_a_gpu_leaves_cpu_and_memory_open() -> None:
    gpu_only = queue("gpu-only", capability={GPU: 2_000})
    assert flat_queues([gpu_only], TOTAL).of(gpu_only).limit == {**TOTAL, GPU: 2_000}


def test_an_endless_limit_stays_endless() -> None:
    endless = queue("endless", capability={CPU: UNLIMITED}, guarantee={CPU: 2**63})
    limit = flat_queues([endless, queue("other", guarantee={CPU: 2**63})], TOTAL).of(endless).limit
    assert limit == {CPU: 2**63, MEMORY: 100, PODS: 50, GPU: 8_000}


def test_a_queue_may_exceed_what_it_deserves_but_not_its_capability() -> None:
    world = World(nodes="n1 cpu=8", queues="q deserved=cpu:1 capability=cpu:3")
    world.job("j", queue="q", pods=5, minimum=1, cpu=1)
    assert world.run(policy=FLAT).bound_per_job == {"default/j": 3}


def test_the_guarantee_of_an_empty_queue_is_kept_free() -> None:
    world = World(nodes="n1 cpu=8", queues="mine; theirs guarantee=cpu:6")
    world.job("j", queue="mine", pods=5, minimum=1, cpu=1)
    assert world.run(policy=FLAT).bound_per_job == {"default/j": 2}


def test_the_smaller_share_of_what_is_deserved_comes_first() -> None:
    world = World(nodes="n1 cpu=6", queues="small deserved=cpu:2; large deserved=cpu:4")
    for name in ("small", "large"):
        world.job(name, queue=name, pods=6, minimum=1, cpu=1)
    assert world.run(policy=FLAT).bound_per_job == {"default/small": 2, "default/large": 4}


def test_a_queue_that_deserves_nothing_comes_after_one_that_has_all_it_deserves() -> None:
    world = World(nodes="n1 cpu=2", queues="nothing; full deserved=cpu:1")
    world.job("running", queue="full", cpu=1, running_on="n1")
    world.job("a", queue="nothing", cpu=1).job("b", queue="full", cpu=1)
    assert world.run(policy=FLAT).bound_per_job == {"default/b": 1}


def test_the_priority_of_a_queue_goes_before_its_share() -> None:
    world = World(nodes="n1 cpu=1", queues="poor deserved=cpu:4; first priority=5")
    world.job("a", queue="poor", cpu=1).job("b", queue="first", cpu=1)
    assert world.run(policy=FLAT).bound_per_job == {"default/b": 1}


@pytest.mark.parametrize(("state", "bound"), [("", 1), ("Open", 1), ("Closed", 0), ("Closing", 0)])
def test_only_an_open_queue_takes_jobs_and_one_without_a_state_is_open(state: str, bound: int) -> None:
    world = World(nodes="n1 cpu=1", queues=f"q state={state}").job("j", queue="q", cpu=1)
    assert len(world.run(policy=FLAT).binds) == bound


def test_the_gate_counts_what_is_held_and_what_was_promised() -> None:
    world = World(nodes="n1 cpu=8", queues="q capability=cpu:5")
    world.job("runs", queue="q", pods=2, cpu=1, min_resources={"cpu": 2}, running_on="n1 n1")
    world.job("first", queue="q", pods=2, cpu=1, min_resources={"cpu": 2})
    world.job("second", queue="q", pods=2, cpu=1, min_resources={"cpu": 2})
    world.job("third", queue="q", cpu=1, min_resources={"cpu": 1})
    result = world.run(policy=policy("enqueue", tree=False))
    assert [result.phases[f"default/{name}"] for name in ("first", "second", "third")] == [
        "Inqueue",
        "Pending",
        "Inqueue",
    ]
    assert "queue resource quota insufficient: insufficient cpu" in messages_about(result, "second")


def test_what_a_job_holds_beyond_its_minimum_does_not_keep_others_out() -> None:
    world = World(nodes="n1 cpu=8", queues="q capability=cpu:4")
    world.job("wide", queue="q", pods=4, minimum=1, cpu=1, min_resources={"cpu": 1}, running_on="n1 n1 n1 n1")
    world.job("next", queue="q", pods=3, cpu=1, min_resources={"cpu": 3})
    assert world.run(policy=policy("enqueue", tree=False)).phases["default/next"] == "Inqueue"


def test_side_by_side_no_parent_counts() -> None:
    world = World(nodes="n1 cpu=4", queues="top capability=cpu:1; leaf parent=top; lost parent=nowhere")
    world.job("a", queue="top", cpu=1).job("b", queue="leaf", cpu=2).job("c", queue="lost", cpu=1)
    assert len(world.run(policy=FLAT).binds) == 3


def test_quota_on_devices_is_accepted_and_limits_no_ordinary_pod() -> None:
    world = World(nodes="n1 cpu=4")
    quota = {"deviceclass/gpu": "2", "memory.deviceclass/gpu": "40Gi"}
    spec = {"capability": quota, "deserved": {"cpu": 1, **quota}}
    world.add({"kind": "Queue", "metadata": {"name": "q"}, "spec": spec})
    world.job("j", queue="q", pods=3, cpu=1)
    assert len(world.run(policy=FLAT).binds) == 3


def test_a_queue_that_deserves_only_devices_has_a_share_of_nothing() -> None:
    """# quirk: spec 03 9: the keys enter the ordinary amounts, where nothing ever holds them."""
    only = queue("only", deserved={7: 2_000}, held={CPU: 1_000})
    assert flat_queues([only], TOTAL).of(only).order_key == (0.0, False)
