"""What cycles make of native groups: gangs like Volcano's, with one condition, and no gate to pass."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from stromboli.api import names
from stromboli.api.types.pod import Pod
from stromboli.engine.cycle import Outcome
from stromboli.engine.decisions import Bind, Decision, Event, Evict, NativeGroupCondition, PodCondition
from tests.manifests import (
    Manifest,
    group,
    job_named,
    native_group,
    node,
    pod,
    priority_class,
    queue,
    task_named,
)
from tests.properties.living import LivingWorld, binds, engine

PLUGINS = ("priority, gang, conformance", "predicates, proportion")
EVERYTHING = "enqueue, allocate, backfill, preempt, reclaim"


def world_of(*objects: Manifest, actions: str = "enqueue, allocate, backfill") -> LivingWorld:
    return LivingWorld([queue(), *objects], lambda: engine(*PLUGINS, actions=actions))


def members(name: str, count: int, **terms: Any) -> list[Manifest]:
    return [pod(f"{name}-x-{number}", native=name, **terms) for number in range(count)]


def conditions(decisions: Iterable[Decision]) -> list[tuple[str, str]]:
    return [
        (decision.status, decision.reason)
        for decision in decisions
        if isinstance(decision, NativeGroupCondition)
    ]


def evicted(outcome: Outcome) -> list[str]:
    return sorted(decision.name for decision in outcome.decisions if isinstance(decision, Evict))


# -- gangs


def test_two_of_three_wait_and_all_three_start_when_the_third_comes() -> None:
    world = world_of(node("n1"), native_group("g", 3), *members("g", 2))
    outcome = world.step()
    assert not binds(outcome.decisions)
    assert conditions(outcome.decisions) == [("False", "Unschedulable")]
    assert "valid: 2, min: 3" in next(
        decision.message for decision in outcome.decisions if isinstance(decision, NativeGroupCondition)
    )
    assert not world.step().decisions  # said once
    world.put(pod("g-x-2", native="g"))
    outcome = world.step()
    assert len(binds(outcome.decisions)) == 3
    assert conditions(outcome.decisions) == [("True", "Scheduled")]
    assert not conditions(world.step().decisions)


def test_a_gang_that_does_not_fit_holds_nothing() -> None:
    world = world_of(node("n1", cpu=2), native_group("g", 3), *members("g", 3), group("v", 1), pod("v", "v"))
    assert [key for key, _ in binds(world.step().decisions)] == ["default/v"]


def test_what_was_scheduled_once_stays_so() -> None:
    world = world_of(node("n1", cpu=2), native_group("g", 2), *members("g", 2))
    assert conditions(world.step().decisions) == [("True", "Scheduled")]
    for task in list(job_named(world.intake.cluster, "g").tasks.values()):
        world.drop(world.objects[Pod, task.key])
    world.put(pod("late", native="g", cpu=9))
    outcome = world.step()
    assert not conditions(outcome.decisions)
    assert any(isinstance(decision, PodCondition) for decision in outcome.decisions)
    assert not job_named(world.intake.cluster, "g").waits_for_queue


def test_pods_of_a_basic_group_start_one_by_one() -> None:
    objects = [native_group("g"), pod("g-x-0", native="g", cpu=9), pod("g-x-1", native="g")]
    outcome = world_of(node("n1"), *objects).step()
    assert binds(outcome.decisions) == [("default/g-x-1", "n1")]
    assert conditions(outcome.decisions) == [("True", "Scheduled")]


def test_each_pod_of_a_basic_group_may_take_the_place_of_another() -> None:
    objects = [
        group("low", priorityClassName="low"),
        pod("low-0", "low", on="n1"),
        native_group("g", priority=5),
        pod("g-x-0", on="n1", native="g"),
        pod("g-x-1", native="g"),
    ]
    world = world_of(node("n1", cpu=2), priority_class("low", -5), *objects, actions=EVERYTHING)
    assert evicted(world.cycle()) == ["low-0"]


def test_a_full_queue_takes_no_more_of_them() -> None:
    small = queue("small", capability={"cpu": "1", "memory": "1Gi"})
    marked = native_group("g", 1, annotations={names.QUEUE_NAME: "small"})
    world = world_of(node("n1"), small, marked, *members("g", 2))
    assert len(binds(world.step().decisions)) == 1


def test_a_group_with_pods_of_other_schedulers_only_is_left_alone() -> None:
    other = pod("a", on="n1", native="g", scheduler="default-scheduler")
    outcome = world_of(node("n1"), native_group("g", 3), other).step()
    assert not [
        decision for decision in outcome.decisions if isinstance(decision, NativeGroupCondition | Event)
    ]


# -- who cannot take part


def test_a_pod_without_its_group_is_told_so_once() -> None:
    world = world_of(node("n1"), *members("g", 1))
    [condition] = [decision for decision in world.step().decisions if isinstance(decision, PodCondition)]
    assert condition.reason == "Unschedulable"
    assert condition.message.startswith(
        "This pod waits: PodGroup default/g of scheduling.k8s.io does not exist;"
    )
    assert condition.message.endswith("(pod group is not ready)")
    assert not world.step().decisions
    world.put(native_group("g", 1))
    assert len(binds(world.step().decisions)) == 1


def test_a_pod_whose_group_is_in_no_queue_is_told_so() -> None:
    lost = native_group("g", 1, annotations={names.QUEUE_NAME: "nowhere"})
    [condition] = [
        decision
        for decision in world_of(node("n1"), lost, *members("g", 1)).step().decisions
        if isinstance(decision, PodCondition)
    ]
    assert condition.message.startswith(
        'PodGroup g waits: queue "nowhere" does not exist; create it, or set '
    )


# -- how they may be disturbed


def crowd(mode: Any, minimum: int, **terms: Any) -> list[Manifest]:
    """A gang of three over two nodes that are full with it."""
    return [
        node("n1", cpu=2),
        node("n2", cpu=1),
        native_group("old", minimum, disruptionMode=mode, priority=1, **terms),
        pod("old-x-0", on="n1", native="old"),
        pod("old-x-1", on="n1", native="old"),
        pod("old-x-2", on="n2", native="old"),
    ]


ALL = ["old-x-0", "old-x-1", "old-x-2"]
URGENT = [native_group("new", 1, priority=9), pod("new-x-0", native="new", priority=9)]


@pytest.mark.parametrize("mode", ["PodGroup", {"all": {}}])
@pytest.mark.parametrize("minimum", [0, 1, 3])
def test_a_group_goes_as_a_whole_if_it_says_so(mode: Any, minimum: int) -> None:
    assert evicted(world_of(*crowd(mode, minimum), *URGENT, actions=EVERYTHING).cycle()) == ALL


@pytest.mark.parametrize("mode", ["", "Pod", {"single": {}}])
@pytest.mark.parametrize("minimum", [0, 1, 3])
def test_else_a_single_pod_goes(mode: Any, minimum: int) -> None:
    assert len(evicted(world_of(*crowd(mode, minimum), *URGENT, actions=EVERYTHING).cycle())) == 1


def test_nobody_of_it_goes_if_one_must_stay() -> None:
    objects = crowd("PodGroup", 1)[:-1]
    firm = pod("old-x-2", on="n2", native="old", annotations={names.PREEMPTABLE: "false"})
    assert not evicted(world_of(*objects, firm, *URGENT, actions=EVERYTHING).cycle())
    critical = pod("old-x-2", on="n2", native="old", spec={"priorityClassName": names.SYSTEM_NODE_CRITICAL})
    assert not evicted(world_of(*objects, critical, *URGENT, actions=EVERYTHING).cycle())


@pytest.mark.parametrize(("mode", "wanting", "count"), [("PodGroup", 1, 0), ("PodGroup", 3, 3), ("", 3, 1)])
def test_another_queue_takes_back_its_share_from_the_whole_of_it(mode: str, wanting: int, count: int) -> None:
    """Not at all where its own queue would be left with less than it deserves."""
    mine = native_group("new", 1, annotations={names.QUEUE_NAME: "mine"})
    objects = [*crowd(mode, 1), queue("mine", weight=100), mine, *members("new", wanting)]
    assert len(evicted(world_of(*objects, actions=EVERYTHING).cycle())) == count


@pytest.mark.parametrize(("mode", "count"), [("PodGroup", 3), ("Pod", 1)])
def test_a_raid_takes_all_of_it_or_what_it_can_spare(mode: str, count: int) -> None:
    world = world_of(*crowd(mode, 1), *URGENT, actions="allocate, gangpreempt")
    assert len(evicted(world.cycle())) == count


def test_a_group_that_never_preempts_waits() -> None:
    patient = native_group("new", 1, priority=9, preemptionPolicy="Never")
    objects = [*crowd("", 1), patient, pod("new-x-0", native="new", priority=9)]
    assert not evicted(world_of(*objects, actions=EVERYTHING).cycle())
    assert not evicted(world_of(*objects, actions="allocate, gangpreempt").cycle())


def test_a_group_that_goes_as_a_whole_does_not_disturb_itself() -> None:
    def within(mode: str) -> list[str]:
        objects = [native_group("g", 2, disruptionMode=mode), pod("g-x-0", on="n1", native="g", priority=1)]
        urgent = [pod("g-x-1", native="g", priority=9)]
        return evicted(world_of(node("n1", cpu=1), *objects, *urgent, actions=EVERYTHING).cycle())

    assert within("PodGroup") == []


def test_the_event_of_an_eviction_is_about_the_native_group() -> None:
    outcome = world_of(*crowd("", 1), *URGENT, actions=EVERYTHING).cycle()
    about = {
        (decision.kind, decision.name)
        for decision in outcome.decisions
        if isinstance(decision, Event) and decision.reason == "Evict"
    }
    assert ("NativePodGroup", "old") in about
    assert task_named(outcome.session.cluster, "new-x-0").job is not None
    assert not [decision for decision in outcome.decisions if isinstance(decision, Bind)]
