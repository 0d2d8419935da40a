"""Arguments that evicting actions share: who is spared, and for how long (beyond Volcano)."""

from __future__ import annotations

from typing import Any

import pytest

from stromboli.extensions import load_catalog
from stromboli.policy.policy import load_policy
from stromboli.policy.presets import PRESETS
from stromboli.testing import World
from stromboli.testing.world import NOON
from tests.eviction_policies import GENTLE, LOOSE, SHARES, STOCK
from tests.manifests import EPOCH, hyper_node, pod, policy

YOUNG, AGED = "2026-11-01T11:55:00Z", "2026-11-01T11:30:00Z"
"""When pods began; it is noon."""
NOTE = "stromboli.sh/min-run-time"
GPU = "nvidia.com/gpu"


def evicted(
    started: str | None,
    *,
    group: str = "",
    queue: str = "",
    action: str = "preempt",
    **arguments: Any,
) -> bool:
    """Whether a pod of low priority has to go that began then; its PodGroup and its queue may say how long it stays."""
    world = World(nodes="n1 cpu=1")
    note = {"metadata": {"name": "default", "annotations": {NOTE: queue} if queue else {}}}
    world.add(
        {"kind": "Queue", "apiVersion": "scheduling.volcano.sh/v1beta1", "status": {"state": "Open"}, **note}
    )
    world.job(
        "old", pods=0, minimum=0, priority=1, phase="Running", annotations={NOTE: group} if group else {}
    )
    world.add(pod("old-0", "old", cpu=1, on="n1", status={"startTime": started} if started else {}))
    world.job("new", cpu=1, priority=9)
    return bool(world.run(policy=policy(f"enqueue, {action}", STOCK, **{action: arguments})).evicted)


@pytest.mark.parametrize("action", ["preempt", "gangpreempt"])
def test_a_pod_runs_for_a_while_before_it_may_be_a_victim(action: str) -> None:
    assert not evicted(YOUNG, action=action, minRunTime="10m")
    assert evicted(AGED, action=action, minRunTime="10m")
    assert evicted(YOUNG, action=action, minRunTime="5m"), "exactly then"
    assert evicted(YOUNG, action=action)


def test_reclaim_spares_the_young_too() -> None:
    def run(started: str) -> list[str]:
        world = World(nodes="n1 cpu=1", queues="mine; theirs").job("old", pods=0, minimum=0, queue="theirs")
        world.add(pod("old-0", "old", cpu=1, on="n1", status={"startTime": started}))
        world.job("new", cpu=1, queue="mine")
        text = policy("enqueue, reclaim", "gang conformance", reclaim={"minRunTime": "10m"})
        return world.run(policy=text).evicted

    assert (run(YOUNG), run(AGED)) == ([], ["default/old-0"])


def test_a_pod_without_a_start_time_has_just_started() -> None:
    assert not evicted(None, minRunTime="1s")
    assert evicted(None, minRunTime="0s")


def test_a_podgroup_overrules_its_queue_and_that_the_argument() -> None:
    assert not evicted(AGED, group="1h", minRunTime="0s")
    assert evicted(YOUNG, group="1m", queue="1h", minRunTime="2h")
    assert not evicted(AGED, queue="1h", minRunTime="0s")
    assert evicted(YOUNG, queue="1m", minRunTime="2h")


def test_a_note_that_is_no_duration_does_not_count() -> None:
    assert not evicted(AGED, group="soon", queue="1h", minRunTime="0s")
    assert evicted(AGED, group="soon", queue="never", minRunTime="10m")
    assert not evicted(YOUNG, group="-5", minRunTime="10m")


def test_without_the_argument_notes_do_not_count_as_in_volcano() -> None:
    assert evicted(YOUNG, group="1h", queue="1h")


def test_a_pod_that_was_just_started_here_is_young() -> None:
    world = World(nodes="n1 cpu=1").job("old", minimum=0, cpu=1, priority=1)
    text = policy("enqueue, allocate, preempt", STOCK, preempt={"minRunTime": "10m"})
    assert world.run(policy=text).binds == {"default/old-0": "n1"}
    world.job("new", cpu=1, priority=9)
    assert world.step().evicted == []
    assert world.sleep(600).step().evicted == ["default/old-0"]


@pytest.mark.parametrize("action", ["preempt", "reclaim", "gangpreempt", "gangreclaim"])
@pytest.mark.parametrize("value", ["soon", "-1s"])
def test_invalid_times_are_reported_and_the_default_is_used(action: str, value: str) -> None:
    bad = {"holdFor": value, "minRunTime": value, "protectFor": value, "minWaitTime": value}
    read = load_policy(policy(f"enqueue, {action}", STOCK, **{action: bad}), load_catalog())
    assert len(read.warnings) == 4
    assert all("must be a duration such as 5m or 0s" in warning for warning in read.warnings)
    used = read.configurations[action]
    assert (used.hold_seconds, used.min_run_time) == (0.0, "")
    assert (used.protect_for, used.min_wait_time) == ("0s", "0s")


# -- priorities, youth and settled demand

RECLAIMING = ["reclaim", "gangreclaim"]


def shares(action: str, priority: int = 0, started: str = AGED, **arguments: Any) -> World:
    """A queue that wants its half of a node, against a pod of priority 5 that started then."""
    world = World(nodes="n1 cpu=1", queues="mine; theirs").job(
        "old", pods=0, minimum=0, priority=5, queue="theirs"
    )
    world.add(pod("old-0", "old", cpu=1, on="n1", status={"startTime": started}))
    world.job("new", cpu=1, priority=priority, queue="mine")
    world.run(policy=policy(f"enqueue, {action}", "gang conformance", **{action: arguments}))
    return world


def has_room(world: World) -> bool:
    return world.task("new-0").nominated == "n1"


@pytest.mark.parametrize("action", RECLAIMING)
def test_a_protected_pod_is_evicted_for_a_higher_priority_only(action: str) -> None:
    assert not has_room(shares(action, priority=5, started=YOUNG, protectFor="10m"))
    assert has_room(shares(action, priority=6, started=YOUNG, protectFor="10m"))
    assert has_room(shares(action, priority=5, started=AGED, protectFor="10m"))
    assert has_room(shares(action, priority=5, started=YOUNG))


def test_a_start_in_the_future_does_not_protect_a_pod() -> None:
    assert has_room(shares("reclaim", priority=5, started="2026-11-18T00:00:00Z", protectFor="10m"))


@pytest.mark.parametrize("action", RECLAIMING)
def test_no_pod_is_reclaimed_for_a_lower_priority_if_priorities_are_respected(action: str) -> None:
    assert not has_room(shares(action, priority=4, respectPriority=True))
    assert has_room(shares(action, priority=5, respectPriority=True))
    assert has_room(shares(action, priority=4))


@pytest.mark.parametrize("action", RECLAIMING)
def test_a_job_is_tried_again_when_the_protection_of_its_victims_ends(action: str) -> None:
    world = shares(action, priority=5, started=YOUNG, protectFor="10m")
    assert world.step(2).evicted == []
    assert world.sleep(296).step().outcome.repeated
    assert world.step().evicted == ["default/old-0"]


@pytest.mark.parametrize("action", [*RECLAIMING, "preempt", "gangpreempt"])
def test_a_pod_waits_before_others_are_evicted_for_it(action: str) -> None:
    world = World(nodes="n1 cpu=1", queues="mine; theirs")
    world.job("old", minimum=0, cpu=1, queue="theirs" if action in RECLAIMING else "mine", running_on="n1")
    config = policy(f"enqueue, {action}", "priority conformance", **{action: {"minWaitTime": "30s"}})
    world.job("new", pods=0, minimum=1, priority=9, queue="mine")
    world.add(pod("new-0", "new", cpu=1, created=NOON - EPOCH))
    assert world.run(policy=config).evicted == []
    assert world.sleep(20).step().evicted == []
    assert world.sleep(9).step().evicted == ["default/old-0"]


@pytest.mark.parametrize(
    ("deserved", "cpu", "evicted"),
    [
        # Within its share afterwards, whatever the other queue loses.
        ({"mine": 2, "theirs": 2}, 1, ["default/old-0"]),
        # One GPU above its share afterwards, as the other queue is now.
        ({"mine": 1, "theirs": 3}, 1, []),
        ({"mine": 1, "theirs": 2}, 1, ["default/old-0"]),
        # A queue that deserves none holds all of them above its share.
        ({"mine": 1}, 5, ["default/old-0"]),
    ],
)
@pytest.mark.parametrize("action", RECLAIMING)
def test_a_queue_exceeds_its_share_only_if_less_is_then_held_above_the_shares(
    action: str, deserved: dict[str, int], cpu: float, evicted: list[str]
) -> None:
    def world() -> World:
        shares = (
            f"{name} deserved=cpu:4" + (f",{GPU}:{deserved[name]}" if name in deserved else "")
            for name in ("mine", "theirs")
        )
        world = World(nodes=f"n1 cpu=8,{GPU}=4", queues="; ".join(shares))
        world.job("old", minimum=0, cpu=cpu, gpu=4, queue="theirs", running_on="n1")
        return world.job("new", cpu=1, gpu=2, queue="mine")

    plugins = "priority conformance | predicates capacity"
    strict = policy(f"enqueue, {action}", plugins, **{action: {"respectShares": True}})
    assert world().run(policy=strict).evicted == evicted
    assert world().run(policy=policy(f"enqueue, {action}", plugins)).evicted == ["default/old-0"]


def test_a_pod_that_was_created_before_the_clock_was_set_back_has_waited() -> None:
    world = World(nodes="n1 cpu=1").job("old", minimum=0, cpu=1, running_on="n1")
    world.job("new", pods=0, minimum=1, priority=9)
    world.add(pod("new-0", "new", cpu=1, created=NOON - EPOCH + 3600))
    config = policy("enqueue, preempt", "priority conformance", preempt={"minWaitTime": "30s"})
    assert world.run(policy=config).evicted == ["default/old-0"]


def test_a_young_pod_of_the_same_job_is_evicted_for_a_more_important_one() -> None:
    world = World(nodes="n1 cpu=1").job("job", pods=0, minimum=0, phase="Running")
    important = {"volcano.sh/task-priority": "9"}
    world.add(pod("job-0", "job", cpu=1, on="n1", status={"startTime": YOUNG}))
    world.add(pod("job-1", "job", cpu=1, annotations=important))
    config = policy("enqueue, preempt", LOOSE, preempt={"protectFor": "10m", "respectPriority": True})
    assert world.run(policy=config).evicted == ["default/job-0"]


# -- what a job loses is in proportion


def full_of_gangs(*sizes: int) -> World:
    """A gang on each node, which it fills; the first gang is on the oldest node."""
    names = [f"n{number}" for number in range(len(sizes))]
    world = World(nodes="; ".join(f"{name} cpu={size}" for name, size in zip(names, sizes, strict=True)))
    for name, size in zip(names, sizes, strict=True):
        world.job(f"gang-of-{size}", pods=size, cpu=1, priority=1, running_on=[name] * size)
    return world


def victims(world: World, pods: int, action: str = "preempt") -> set[str]:
    world.job("new", pods=pods, cpu=1, priority=9)
    config = policy(f"enqueue, {action}", LOOSE, **{action: GENTLE})
    return {name.rsplit("-", 1)[0] for name in world.run(policy=config).evicted}


@pytest.mark.parametrize("action", ["preempt", "gangpreempt"])
@pytest.mark.parametrize(
    "sizes", [(4, 3, 2), (2, 3, 4), (10, 8, 7, 6, 5, 4, 3, 2), (3, 7, 2, 10, 5, 8, 4, 6)]
)
def test_the_smallest_gang_that_is_enough_is_evicted(sizes: tuple[int, ...], action: str) -> None:
    assert victims(full_of_gangs(*sizes), 1, action) == {"default/gang-of-2"}


@pytest.mark.parametrize("action", ["preempt", "gangpreempt"])
def test_a_gang_whose_surplus_is_not_enough_stays_if_a_smaller_job_is_enough(action: str) -> None:
    world = World(nodes="n1 cpu=8; n2 cpu=4")
    world.job("gang", pods=8, minimum=7, cpu=1, priority=1, running_on=["n1"] * 8)
    world.job("single", cpu=4, priority=1, running_on="n2")
    world.job("new", cpu=2, priority=9)
    config = policy(f"enqueue, {action}", LOOSE, **{action: GENTLE})
    assert world.run(policy=config).evicted == ["default/single-0"]


def test_a_small_job_in_another_hyper_node_is_evicted_before_a_gang() -> None:
    world = World(nodes="n1 cpu=8; n2 cpu=2")
    world.add(hyper_node("a", 1, nodes=["n1"]), hyper_node("b", 1, nodes=["n2"]))
    world.job("gang", pods=4, cpu=2, priority=1, running_on=["n1"] * 4)
    world.job("single", cpu=2, priority=1, running_on="n2")
    world.job("new", cpu=1, priority=9, group={"networkTopology": {"mode": "hard", "highestTierAllowed": 1}})
    assert world.run(policy=PRESETS["full"]).evicted == ["default/single-0"]


@pytest.mark.parametrize("action", ["preempt", "gangpreempt"])
def test_lower_priorities_come_before_smaller_jobs(action: str) -> None:
    world = World(nodes="n1 cpu=4; n2 cpu=1")
    world.job("gang", pods=4, cpu=1, priority=1, running_on=["n1"] * 4)
    world.job("single", cpu=1, priority=2, running_on="n2")
    assert victims(world, 1, action) == {"default/gang"}


@pytest.mark.parametrize("action", ["preempt", "gangpreempt"])
@pytest.mark.parametrize(("single", "victim"), [(2, "single"), (10, "gang")])
def test_a_gang_of_many_times_the_need_is_evicted_only_if_nothing_smaller_is_enough(
    single: int, victim: str, action: str
) -> None:
    world = World(nodes="n1 cpu=8; n2 cpu=8; n3 cpu=1")
    world.job("gang", pods=2, cpu=8, priority=1, running_on="n1 n2")
    world.job("single", cpu=1, priority=single, running_on="n3")
    assert victims(world, 1, action) == {f"default/{victim}"}


@pytest.mark.parametrize(("low", "victim"), [(1, "low"), (2, "middle")])
def test_reclaim_evicts_small_gangs_first_and_among_them_the_lowest_priority(low: int, victim: str) -> None:
    """The first tier allows none of them, as each gang needs all its pods."""
    world = World(nodes="; ".join(f"n{number} cpu=2" for number in range(low + 1)), queues="mine; theirs")
    world.job("middle", cpu=2, priority=5, queue="theirs", running_on="n0")
    world.job("low", pods=low, cpu=2, priority=1, queue="theirs", running_on=["n1", "n2"][:low])
    world.job("new", cpu=2, priority=9, queue="mine")
    config = policy("enqueue, reclaim", SHARES, reclaim={**GENTLE, "doNoHarm": True})
    assert world.run(policy=config).evicted == [f"default/{victim}-0"]


def test_a_large_gang_is_evicted_if_nothing_smaller_is_enough() -> None:
    world = full_of_gangs(4, 2).job("big", cpu=4, priority=9)
    config = policy("enqueue, preempt", LOOSE, preempt=GENTLE)
    assert set(world.run(policy=config).evicted) == {f"default/gang-of-4-{number}" for number in range(4)}


def test_pods_without_a_gpu_do_not_hide_a_gang_with_one() -> None:
    """The first tier allows the surplus of `elastic` alone, which has no GPU."""
    world = World(nodes="n1 cpu=3,nvidia.com/gpu=2", queues="mine; theirs")
    world.job("elastic", pods=1, minimum=0, cpu=1, queue="theirs", running_on="n1")
    world.job("train", cpu=1, gpu=1, queue="theirs", running_on="n1")
    world.job("tune", cpu=1, gpu=1, queue="theirs", running_on="n1")
    world.job("new", cpu=1, gpu=1, queue="mine")
    config = policy("enqueue, reclaim", SHARES, reclaim={**GENTLE, "doNoHarm": True})
    assert world.run(policy=config).evicted == ["default/tune-0"]
