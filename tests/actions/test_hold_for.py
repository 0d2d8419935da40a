"""`holdFor`: room that was cleared for a task is kept for it beyond the cycle, and no longer than it is of use."""

from __future__ import annotations

import pytest

from stromboli.engine.eviction.eviction_commit import ATTEMPTS, EVICTED, EvictionAttempt, Loss
from stromboli.engine.placement.node_placement import Place
from stromboli.testing import World
from stromboli.testing.world import NOON
from tests.eviction_policies import GENTLE, STOCK
from tests.manifests import pod, policy
from tests.properties.rebuild import fingerprint, kept_sums, rebuilt_sums

HOLDING = policy("enqueue, allocate, preempt", STOCK, preempt=GENTLE)
FORGETTING = policy("enqueue, allocate, preempt", STOCK, preempt={**GENTLE, "holdFor": "0s"})


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
    world.add(pod("old-9", "old", cpu=1))
    assert world.step().bound_per_job == bound


def test_what_is_held_is_gone_once_its_owner_runs() -> None:
    world = cleared(HOLDING)
    assert [held.node.name for held in world.cluster.reservations] == ["n1"]
    world.step(2)
    assert not world.cluster.reservations
    assert kept_sums(world.cluster) == rebuilt_sums(world.cluster)


def test_all_places_of_a_gang_are_reserved_after_an_eviction_also_those_that_were_free() -> None:
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


def test_nothing_is_reserved_for_a_job_that_needed_no_eviction() -> None:
    world = World(nodes="n1 cpu=4").job("new", cpu=2, priority=9)
    world.run(policy=policy("enqueue, preempt", STOCK, preempt=GENTLE))
    assert not world.cluster.reservations


def test_the_hold_ends_with_its_time_and_others_may_have_the_room() -> None:
    world = cleared(policy("enqueue, allocate, preempt", STOCK, preempt={**GENTLE, "holdFor": "10s"}))
    gate = {"schedulingGates": [{"name": "wait"}], "priority": 9}
    world.task("new-0")
    world.add(pod("new-0", "new", cpu=2, spec=gate))  # its owner is held up elsewhere
    world.job("third", cpu=2, priority=1)
    assert world.step().binds == {}
    assert world.sleep(20).step().binds == {"default/third-0": "n1"}


def test_the_share_of_the_queue_above_is_kept_too() -> None:
    """A sibling finds room on a node, but the parent's limit is spoken for: else the victim went in vain."""
    world = World(
        nodes="n1 cpu=2; n2 cpu=2",
        queues="root; team capability=cpu:2; first parent=team; second parent=team",
    )
    world.job("old", minimum=0, cpu=1, priority=1, running_on="n1", queue="second")
    world.job("new", pods=2, cpu=1, priority=9, queue="second")
    tree = policy(
        "enqueue, allocate, preempt",
        *(
            "priority gang conformance | predicates",
            {"name": "capacity", "enableHierarchy": True},
            "nodeorder",
        ),
        preempt=GENTLE,
    )
    assert world.run(policy=tree).evicted == ["default/old-0"]
    assert world.cluster.queues["team"].reserved_below[0] == 2000
    world.job("sibling", cpu=1, queue="first")
    assert world.step().bound_per_job == {"default/new": 2}
    assert world.cluster.queues["team"].reserved_below == {}


def test_looking_for_room_changes_nothing() -> None:
    """Whose room is kept may use it; finding that out leaves every number and every version alone."""
    world = cleared(HOLDING)
    cluster, task = world.cluster, world.task("new-0")
    node = cluster.nodes["n1"]
    session = world.session()
    before = (
        fingerprint(cluster),
        cluster.columns.clock,
        len(session.journal),
        len(session.journal.rollbacks),
    )
    place = session.place(task)
    assert isinstance(place, Place)
    assert place.node is node
    assert session.admits(task, node)
    assert session.future_idle(node, task)[0] == session.future_idle(node)[0] + 2000
    after = (
        fingerprint(cluster),
        cluster.columns.clock,
        len(session.journal),
        len(session.journal.rollbacks),
    )
    assert after == before


# -- whoever lost pods waits

SHARING = policy("enqueue, allocate, reclaim", "gang conformance", reclaim=GENTLE)


def lost(config: str, memory: dict[str, float]) -> World:
    """A job of `mine` that wants the place of a job of `theirs`; `memory` has what was lost how long ago."""
    world = World(nodes="n1 cpu=2", queues="mine; theirs")
    world.job("old", pods=2, minimum=0, cpu=1, queue="theirs", running_on="n1 n1")
    world.job("new", cpu=1, queue="mine")
    world.job("other", cpu=1, queue="mine")
    losses = {
        ("mine", "theirs") if key == "queue" else key: Loss(NOON - ago, 300) for key, ago in memory.items()
    }
    world.cluster.memory[EVICTED] = losses
    world.run(policy=config)
    return world


def evicts_for(world: World) -> set[str]:
    return {job for job in ("new", "other") if world.task(f"{job}-0").nominated}


def test_a_job_that_lost_pods_evicts_no_others_until_its_wait_is_over() -> None:
    assert evicts_for(lost(SHARING, {"default/new": 299})) == {"other"}
    assert evicts_for(lost(SHARING, {"default/new": 300, "default/other": 1})) == {"new"}


def test_a_queue_does_not_take_back_at_once_what_another_queue_reclaimed_from_it() -> None:
    assert evicts_for(lost(SHARING, {"queue": 299})) == set()
    assert evicts_for(lost(SHARING, {"queue": 300})) == {"new", "other"}
    without = SHARING.replace("5m", "0s")
    assert evicts_for(lost(without, {"queue": 299})) == {"new", "other"}


def test_a_higher_priority_takes_back_at_once() -> None:
    world = World(nodes="n1 cpu=1", queues="mine; theirs")
    world.job("old", pods=1, minimum=0, cpu=1, queue="theirs", running_on="n1")
    world.cluster.memory[EVICTED] = {("mine", "theirs"): Loss(NOON - 1, 300)}
    world.job("new", cpu=1, queue="mine", priority=1)
    assert world.run(policy=SHARING).evicted == ["default/old-0"]


@pytest.mark.parametrize(
    ("ago", "before", "after"), [(None, None, 300), (500, 300, 600), (700, 300, 300), (3700, 3600, 3600)]
)
def test_the_wait_doubles_with_each_loss_that_follows_soon(
    ago: float | None, before: float | None, after: float
) -> None:
    world = World(nodes="n1 cpu=1", queues="mine; theirs")
    world.job("old", pods=1, minimum=0, cpu=1, queue="theirs", running_on="n1").job(
        "new", cpu=1, queue="mine"
    )
    if ago is not None and before is not None:
        world.cluster.memory[EVICTED] = {
            "default/old": Loss(NOON - ago, before),
            ("mine", "theirs"): Loss(NOON - ago, before),
        }
    assert world.run(policy=SHARING).evicted == ["default/old-0"]
    losses = world.cluster.memory[EVICTED]
    assert (losses["default/old"].seconds, losses["theirs", "mine"].seconds) == (after, after)


# -- a job whose evictions were in vain waits


@pytest.mark.parametrize(
    ("attempt", "served"),
    [
        (EvictionAttempt(NOON - 1, 0, 1), True),
        (EvictionAttempt(NOON - 1, 0, 2), False),
        (EvictionAttempt(NOON - 299, 0, 2), False),
        (EvictionAttempt(NOON - 300, 0, 2), True),
        (EvictionAttempt(NOON - 300, 0, 3), False),
        (EvictionAttempt(NOON - 3600, 0, 9999), True),
    ],
)
@pytest.mark.parametrize("action", ["reclaim", "gangreclaim"])
def test_a_job_reclaims_no_more_for_a_while_if_others_took_the_capacity_twice(
    attempt: EvictionAttempt, served: bool, action: str
) -> None:
    config = policy(f"enqueue, {action}", "gang conformance")
    world = World(nodes="n1 cpu=2", queues="mine; theirs")
    world.job("old", pods=2, minimum=0, cpu=1, queue="theirs", running_on="n1 n1")
    world.job("new", cpu=1, queue="mine")
    world.cluster.memory[ATTEMPTS] = {"default/new": attempt}
    assert bool(world.run(policy=config).evicted) is served


@pytest.mark.parametrize(("ago", "tries"), [(9, 2), (299, 2), (300, 1)])
def test_attempts_are_counted_as_long_as_the_job_gets_no_pods(ago: float, tries: int) -> None:
    world = World(nodes="n1 cpu=2", queues="mine; theirs")
    world.job("old", pods=2, minimum=0, cpu=1, queue="theirs", running_on="n1 n1")
    world.job("new", cpu=1, queue="mine")
    world.cluster.memory[ATTEMPTS] = {"default/new": EvictionAttempt(NOON - ago, 0, 1)}
    world.run(policy=policy("enqueue, reclaim", "gang conformance"))
    assert world.cluster.memory[ATTEMPTS] == {"default/new": EvictionAttempt(NOON, 0, tries)}
