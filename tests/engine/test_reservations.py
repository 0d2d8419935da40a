"""Room that was cleared for a task is held for it beyond the cycle, and no longer than it is of use."""

from __future__ import annotations

import random
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stromboli.api.types.meta import Object
from stromboli.api.types.pod import Pod
from stromboli.model.cluster import Cluster
from stromboli.model.intake.object_intake import Intake
from stromboli.model.status import Status
from stromboli.testing import World
from tests.building import group, intake_of, node, pod, queue, running, task_of
from tests.evicting import GENTLE, STOCK, policy
from tests.evicting import pod as pod_manifest
from tests.properties.rebuild import fingerprint, says, should_say
from tests.properties.strategies import contest, examples, worlds

HOLDING = policy("enqueue, allocate, preempt", STOCK, preempt=GENTLE)
FORGETTING = policy("enqueue, allocate, preempt", STOCK, preempt={**GENTLE, "holdFor": "0s"})


# -- whom it keeps out


def cleared(config: str) -> World:
    """A node from which a pod was just evicted for another."""
    world = World(nodes="n1 cpu=2").job("old", minimum=0, cpu=2, priority=1, running_on="n1")
    world.job("new", cpu=2, priority=9)
    assert world.run(policy=config).evicted == ["default/old-0"]
    return world


def test_a_third_job_does_not_take_the_room_however_urgent() -> None:
    world = cleared(HOLDING).job("third", cpu=1, priority=99)
    assert world.step().binds == {"default/new-0": "n1"}
    world = cleared(FORGETTING).job("third", cpu=1, priority=99)
    assert world.step().binds == {"default/third-0": "n1"}


def test_backfill_finds_no_slot_there_either() -> None:
    def binds(config: str) -> dict[str, str]:
        world = World(nodes="n1 cpu=1,pods=1").job("old", minimum=0, cpu=1, priority=1, running_on="n1")
        world.job("new", cpu=1, priority=9).run(policy=config)
        world.job("idle", priority=99)
        return world.run(policy=config.replace("allocate, preempt", "backfill")).binds

    assert binds(FORGETTING) == {"default/idle-0": "n1"}
    assert binds(HOLDING) == {}


@pytest.mark.parametrize(("hold", "bound"), [("5m", {"default/new": 1}), ("0s", {"default/old": 1})])
def test_the_victim_that_comes_back_does_not_take_the_room(hold: str, bound: dict[str, int]) -> None:
    """Its queue is the older one and comes first."""
    config = policy("enqueue, allocate, reclaim", "gang conformance", reclaim={**GENTLE, "holdFor": hold})
    world = World(nodes="n1 cpu=2", queues="theirs; mine")
    world.job("old", pods=2, minimum=1, cpu=1, queue="theirs", running_on="n1 n1")
    world.job("new", cpu=1, queue="mine")
    assert world.run(policy=config).evicted == ["default/old-1"]
    world.task("new-0")
    world.add(pod_manifest("old-9", "old", cpu=1))
    assert world.step().bound_per_job == bound


def test_what_is_held_is_gone_once_its_owner_runs() -> None:
    world = cleared(HOLDING)
    assert [held.node.name for held in world.cluster.reservations.values()] == ["n1"]
    world.step(2)
    assert world.cluster.reservations == {}
    assert says(world.cluster) == should_say(world.cluster)


def test_of_a_gang_that_somebody_left_for_all_places_are_held_also_those_that_were_free() -> None:
    """Else it cannot start with what was cleared, and the eviction was in vain."""
    world = World(nodes="n1 cpu=1; n2 cpu=1").job("old", minimum=0, cpu=1, priority=1, running_on="n1")
    world.job("new", pods=2, cpu=1, priority=9)
    assert world.run(policy=HOLDING).evicted == ["default/old-0"]
    world.job("third", cpu=1, priority=99)
    assert world.step().bound_per_job == {"default/new": 2}


def test_the_share_of_the_queue_is_held_with_the_room() -> None:
    """One cpu of the queue's two was cleared for the gang; another job of the queue finds room, but no share."""
    world = World(nodes="n1 cpu=2; n2 cpu=2", queues="q capability=cpu:2; other")
    world.job("old", minimum=0, cpu=1, priority=1, running_on="n1", queue="q")
    world.job("new", pods=2, cpu=1, priority=9, queue="q")
    plugins = "priority gang conformance | predicates capacity nodeorder"
    held = policy("enqueue, allocate, preempt", plugins, preempt=GENTLE)
    assert world.run(policy=held).evicted == ["default/old-0"]
    assert world.cluster.queues["q"].reserved[0] == 2000
    world.job("third", cpu=1, priority=99, queue="q").job("else", cpu=1, queue="other")
    assert world.step().bound_per_job == {"default/else": 1, "default/new": 2}
    world.task("new-0")
    assert world.cluster.queues["q"].reserved == {}


def test_nothing_is_held_for_who_only_found_room_that_was_free() -> None:
    world = World(nodes="n1 cpu=4").job("new", cpu=2, priority=9)
    world.run(policy=policy("enqueue, preempt", STOCK, preempt=GENTLE))
    assert world.cluster.reservations == {}


def test_the_hold_ends_with_its_time_and_others_may_have_the_room() -> None:
    world = cleared(policy("enqueue, allocate, preempt", STOCK, preempt={**GENTLE, "holdFor": "10s"}))
    gate = {"schedulingGates": [{"name": "wait"}], "priority": 9}
    world.task("new-0")
    world.add(pod_manifest("new-0", "new", cpu=2, spec=gate))  # its owner is held up elsewhere
    world.job("third", cpu=2, priority=1)
    assert world.step().binds == {}
    assert world.sleep(20).step().binds == {"default/third-0": "n1"}


# -- how it weighs


def held(cluster: Cluster, name: str = "n0") -> int:
    """CPU that is promised on a node."""
    return int(cluster.columns.pipelined[0, cluster.nodes[name].row])


def place(*more: Object) -> tuple[Intake, Cluster]:
    intake = intake_of(queue(), node("n0", cpu=8), node("n1", cpu=8), group("j"), pod("t", "j", cpu=2), *more)
    intake.cluster.settle()
    cluster = intake.cluster
    cluster.reserve(task_of(cluster, "t"), cluster.nodes["n0"], until=100.0)
    return intake, cluster


def sound(cluster: Cluster) -> bool:
    cluster.settle()
    return says(cluster) == should_say(cluster)


def test_it_weighs_as_a_promise_while_its_owner_waits_and_not_otherwise() -> None:
    _, cluster = place()
    task = task_of(cluster, "t")
    assert held(cluster) == 2000
    change = cluster.move(task, Status.ALLOCATED, cluster.nodes["n1"])
    assert (held(cluster), held(cluster, "n1")) == (0, 0)
    assert sound(cluster)
    cluster.undo(change)
    assert held(cluster) == 2000
    cluster.move(task, Status.PIPELINED, cluster.nodes["n0"])
    assert held(cluster) == 2000, "a promise and what is held for it are one"
    assert sound(cluster)


def test_a_second_one_takes_the_place_of_the_first() -> None:
    _, cluster = place()
    cluster.reserve(task_of(cluster, "t"), cluster.nodes["n1"], until=50.0)
    assert (held(cluster), held(cluster, "n1")) == (0, 2000)
    assert sound(cluster)


def test_it_expires() -> None:
    _, cluster = place()
    cluster.expire(99.9)
    assert held(cluster) == 2000
    cluster.expire(100.0)
    assert (held(cluster), cluster.reservations) == (0, {})
    assert sound(cluster)


def test_it_goes_with_its_owner() -> None:
    intake, cluster = place()
    intake.drop(pod("t", "j"))
    assert held(cluster) == 0
    assert sound(cluster)
    cluster.expire(0.0)
    assert cluster.reservations == {}


def test_it_goes_with_its_node_and_a_new_node_of_that_name_owes_nothing() -> None:
    intake, cluster = place()
    intake.drop(node("n0"))
    assert sound(cluster)
    intake.put(node("n0", cpu=8))
    assert sound(cluster)
    assert held(cluster) == 0
    cluster.expire(0.0)
    assert cluster.reservations == {}


def test_it_outlasts_a_change_of_its_nodes_size() -> None:
    intake, cluster = place()
    intake.put(node("n0", cpu=1))
    assert held(cluster) == 2000
    assert sound(cluster)
    intake.put(node("a-new-one"))
    assert sound(cluster)
    assert held(cluster) == 2000, "rows moved"


def test_it_survives_an_update_of_its_pod_and_weighs_what_the_pod_asks_for_then() -> None:
    intake, cluster = place()
    intake.put(pod("t", "j", cpu=2, labels={"new": "label"}))
    assert held(cluster) == 2000
    intake.put(pod("t", "j", cpu=3))
    assert held(cluster) == 3000
    assert sound(cluster)


def test_it_ends_when_its_pod_was_bound_by_somebody_else() -> None:
    intake, cluster = place()
    intake.put(running("t", "n1", "j", cpu=2))
    assert held(cluster) == 0
    assert sound(cluster)
    cluster.expire(0.0)
    assert cluster.reservations == {}


def test_a_new_resource_widens_the_columns_under_it() -> None:
    intake, cluster = place()
    intake.put(node("n2", gpu=4))
    intake.put(running("g", "n2", "j", gpu=1))
    assert sound(cluster)
    cluster.expire(100.0)
    assert sound(cluster)


@given(things=worlds(), later=worlds(), seed=st.integers(0, 2**32))
@examples(40)
def test_whatever_happens_the_numbers_are_right(things: list[Any], later: list[Any], seed: int) -> None:
    """Objects come, change and go, time passes, tasks move, while room is held."""
    chance = random.Random(seed)
    intake = intake_of(*things, *contest(chance))
    cluster, pool = intake.cluster, [*things, *later]
    for now in range(8):
        cluster.settle()
        cluster.expire(float(now))
        tasks = [task for task in cluster.tasks.values() if task.status is Status.PENDING]
        if tasks and cluster.columns.nodes:
            cluster.reserve(
                chance.choice(tasks), chance.choice(cluster.columns.nodes), now + chance.randint(1, 5)
            )
        assert sound(cluster)
        before = fingerprint(cluster)
        if cluster.tasks and cluster.columns.nodes:
            task = chance.choice(list(cluster.tasks.values()))
            change = cluster.move(task, Status.PIPELINED, chance.choice(cluster.columns.nodes))
            assert sound(cluster)
            cluster.undo(change)
        assert fingerprint(cluster) == before
        for thing in chance.sample(pool, min(4, len(pool))):
            known = isinstance(thing, Pod) and cluster.tasks.get(thing.metadata.uid)
            if chance.random() < 0.3:
                intake.drop(thing)
            elif not (known and known.node is not None and not thing.spec.node_name):
                intake.put(msgspec.structs.replace(thing))
        assert sound(cluster)
