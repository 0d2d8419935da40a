"""Jobs that wait for more room than there is are not tried until there is more, or they change."""

from __future__ import annotations

from typing import ClassVar

import pytest

from stromboli.engine.decisions import PodCondition, PodGroupStatus
from stromboli.engine.placement.node_functions import Refusal
from stromboli.engine.plugin import Invalid, Plugin
from stromboli.model.job import Job
from stromboli.model.task import Task
from stromboli.testing import World
from tests.manifests import group, node, priority_class, queue
from tests.plugins.numa_aware.numa_worlds import numa_pod, numa_topology

PLUGINS = "priority gang conformance witness | predicates proportion nodeorder"


class Witness(Plugin):
    """Notes who is tried: everybody who is, is asked first whether it is valid."""

    name = "witness"
    asked: ClassVar[set[str]] = set()

    def job_valid(self, job: Job) -> Invalid | None:
        self.asked.add(job.name)
        return None


@pytest.fixture
def world() -> World:
    """A gang of two and a large pod wait beside what runs; a third of the room is free."""
    world = World("n1 cpu=4; n2 cpu=4", "research")
    world.job("old", pods=2, minimum=0, cpu=3, running_on="n1 n2").job("tiny", cpu="500m", running_on="n1")
    world.job("train", pods=3, cpu=1).job("large", cpu=4)
    return started(world, "enqueue, allocate, backfill")


def started(world: World, actions: str) -> World:
    world.run(actions, PLUGINS, plugin_classes=(Witness,), cycles=3)
    Witness.asked.clear()
    return world


def test_a_new_pod_is_tried_alone(world: World) -> None:
    assert world.job("late", cpu=1).step().bound_per_job == {"default/late": 1}
    assert Witness.asked == {"late"}


def test_room_for_fewer_than_must_start_together_wakes_nobody(world: World) -> None:
    world.finish("tiny-0").step()
    assert Witness.asked == set()


def test_room_for_as_many_as_must_start_together_wakes_whom_it_may_help(world: World) -> None:
    assert world.finish("old-0").step().bound_per_job == {"default/train": 3}
    assert "train" in Witness.asked


def test_a_node_that_comes_has_everybody_tried(world: World) -> None:
    assert world.add(node("n3", cpu=4)).step().bound_per_job["default/train"] == 3
    assert {"train", "large"} <= Witness.asked


def test_room_on_nodes_that_it_may_not_use_helps_nobody() -> None:
    world = World("n1 cpu=4; n2 cpu=4").job("chosen", cpu=2, spec={"nodeSelector": {"disk": "ssd"}})
    started(world, "enqueue, allocate, backfill")
    world.job("late", cpu=1).step()
    assert Witness.asked == {"late"}
    world.add(node("n3", cpu=4, labels={"disk": "ssd"}))
    assert world.step().bound_per_job == {"default/chosen": 1}


def test_cpus_that_change_have_jobs_tried_that_may_get_some_of_them() -> None:
    world = World("n1 cpu=16; n2 cpu=16; n3 cpu=16").job("old", cpu=4, running_on="n3")
    world.add(numa_topology("n1"), group("pinned", 3))
    world.add(*(numa_pod(f"pinned-{number}", 14, group="pinned") for number in range(3)))
    started(world, "enqueue, allocate, backfill")
    world.job("late", cpu=1).step()
    assert Witness.asked == {"late"}
    world.add(numa_topology("n1", allocatable="0-3")).step()
    assert "pinned" in Witness.asked


def test_a_job_that_changes_is_tried(world: World) -> None:
    world.add(group("train", 1, phase="Inqueue"))
    assert world.step().bound_per_job == {"default/train": 1}


def test_a_queue_that_changes_has_its_jobs_tried(world: World) -> None:
    world.add(queue("default", weight=3)).step()
    assert {"train", "large"} <= Witness.asked


def test_who_is_not_tried_is_told_nothing_new_and_can_still_be_explained(world: World) -> None:
    before = world.step()
    result = world.job("late", cpu=1).step()
    assert Witness.asked == {"late"}
    told = {
        decision.name for decision in result.decisions if isinstance(decision, PodCondition | PodGroupStatus)
    }
    assert "train" not in told
    assert result.pending.keys() == before.pending.keys() == {"default/train", "default/large"}
    for job, waits in result.pending.items():
        assert (waits.gate, waits.summary) == (before.pending[job].gate, before.pending[job].summary)
    assert result.why("large-0") != ""


# -- evictions


@pytest.mark.parametrize("action", ["preempt", "gangpreempt"])
def test_victims_that_come_wake_whom_they_may_help(action: str) -> None:
    world = World("n1 cpu=4; n2 cpu=1").job("old", cpu=4, priority=5, running_on="n1")
    world.job("urgent", cpu=4, priority=5)
    started(world, f"enqueue, allocate, {action}, backfill")
    world.job("equal", cpu=1, priority=5).step()
    assert "urgent" not in Witness.asked
    world.add(node("n3", cpu=4)).job("lesser", cpu=4, priority=1, running_on="n3", minimum=0)
    assert world.step().evicted == ["default/lesser-0"]


class Refuser(Plugin):
    """Refuses the pods of one job, for whatever reason."""

    name = "refuser"

    def prefilter(self, task: Task) -> Refusal | None:
        return Refusal("it is refused") if task.job is not None and task.job.name == "first" else None


def two_alike(action: str) -> World:
    """Two equal jobs wait on nodes that are full of pods of their own priority."""
    world = World("n1 cpu=4; n2 cpu=4")
    world.job("old", cpu=4, priority=5, running_on="n1").job("other", cpu=4, priority=5, running_on="n2")
    world.job("first", cpu=4, priority=5).job("second", cpu=4, priority=5)
    plugins = "priority gang conformance refuser | predicates nodeorder"
    world.run(f"enqueue, allocate, {action}, backfill", plugins, plugin_classes=(Refuser,), cycles=3)
    return world


def with_victim(world: World) -> World:
    """In the place of a pod of their priority runs a lesser one."""
    return world.finish("other-0").job("lesser", cpu=4, priority=3, running_on="n2", minimum=0)


@pytest.mark.parametrize("action", ["preempt", "gangpreempt"])
def test_who_is_no_longer_like_the_others_does_not_speak_for_them(action: str) -> None:
    world = two_alike(action).add(priority_class("lowest", 1), group("first", 1, priorityClassName="lowest"))
    world.step()
    assert with_victim(world).step().evicted == ["default/lesser-0"]


@pytest.mark.parametrize("action", ["preempt", "gangpreempt"])
def test_what_keeps_one_pod_out_alone_does_not_keep_out_those_like_it(action: str) -> None:
    assert with_victim(two_alike(action)).step().evicted == ["default/lesser-0"]


def test_a_queue_above_its_share_wakes_those_of_others() -> None:
    world = World("n1 cpu=4; n2 cpu=4", "a; b").job("old", pods=4, cpu=1, queue="a", running_on="n1")
    world.job("b-old", pods=4, cpu=1, queue="b", running_on="n2").job("hungry", cpu=1, queue="a")
    started(world, "enqueue, allocate, reclaim, backfill")
    world.add(queue("c")).step()
    assert "hungry" not in Witness.asked
    world.add(queue("a", weight=3))
    assert len(world.step().evicted) == 1


# -- limits of queues


@pytest.fixture(params=["proportion", "capacity"])
def limited(request: pytest.FixtureRequest) -> World:
    """A gang of three whose queue may have three cores, of which it has one; there is room for all of it."""
    world = World("n1 cpu=8", "research").add(queue("small", capability={"cpu": "3"}))
    world.job("old", cpu=1, queue="small", running_on="n1").job("train", pods=3, cpu=1, queue="small")
    plugins = f"priority gang witness | predicates {request.param}"
    world.run("enqueue, allocate, backfill", plugins, plugin_classes=(Witness,), cycles=3)
    Witness.asked.clear()
    return world


def test_who_needs_more_than_its_queue_may_have_is_not_tried(limited: World) -> None:
    before = limited.step()
    result = limited.job("late", cpu=1).step()
    assert result.bound_per_job == {"default/late": 1}
    assert Witness.asked == {"late"}
    assert result.pending["default/train"].summary == before.pending["default/train"].summary


def test_what_its_queue_gets_back_wakes_whom_it_may_help(limited: World) -> None:
    assert limited.finish("old-0").step().bound_per_job == {"default/train": 3}


def test_evicting_actions_try_who_is_held_back_by_its_queue() -> None:
    world = World("n1 cpu=8").add(queue("small", capability={"cpu": "3"}))
    world.job("old", cpu=1, queue="small", priority=5, running_on="n1")
    world.job("train", pods=3, cpu=1, priority=5, queue="small")
    started(world, "enqueue, allocate, preempt, backfill")
    before = world.step()
    result = world.job("late", cpu=1).step()
    assert "train" in Witness.asked
    assert result.pending["default/train"].summary == before.pending["default/train"].summary
