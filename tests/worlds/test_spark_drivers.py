"""The world `10-spark` (volcano#2037): minResources of a driver promise capacity to executors that do not exist yet."""

from __future__ import annotations

import pytest

from stromboli.testing import World
from tests.manifests import group, node, phases, pod, queue
from tests.worlds.planning import planned, policy_named

OURS = ("full", "fair-share", "full-capacity", "fair-share-capacity")
PRESETS = ("preset:basic", "preset:fair-share", "preset:full", "preset:high-priority")
VOLCANO = ("stock", "stock-capacity", "preset:default")


@pytest.mark.parametrize(
    ("world", "bound"), [("drivers", "s1-driver"), ("executor", "s1-exec"), ("gap", ""), ("cluster-gap", "")]
)
@pytest.mark.parametrize("policy", [*OURS, *PRESETS, *VOLCANO])
def test_a_second_driver_waits_until_the_first_has_its_executors(policy: str, world: str, bound: str) -> None:
    plan = planned(policy, f"10-spark/{world}.yaml").whole
    assert set(plan.binds) == {f"default/{name}" for name in bound.split()}
    assert set(plan.pending) == {"default/s2"}


@pytest.mark.parametrize("policy", [*OURS, *PRESETS])
def test_a_neighbour_without_min_resources_does_not_take_what_executors_were_promised(policy: str) -> None:
    plan = planned(policy, "10-spark/gap-other-nomin.yaml").whole
    assert not plan.binds
    waiting = plan.pending["default/s2"]
    assert waiting.gate == "enqueue"
    assert "(its pods)" in waiting.hint


@pytest.mark.parametrize("policy", [*OURS, *PRESETS, *VOLCANO])
def test_a_neighbour_starts_where_nothing_was_promised(policy: str) -> None:
    assert set(planned(policy, "10-spark/gap-nomin.yaml").whole.binds) == {"default/s2-driver"}


def spark(preset: str = "full", cpu: int = 4) -> World:
    """A driver of one CPU that runs, and was promised two for executors."""
    world = World(policy=policy_named(f"preset:{preset}").source).add(node("n1", cpu=cpu))
    return world.add(
        queue("test", capability={"cpu": "4"}),
        group("s1", 1, phase="Running", queue="test", minResources={"cpu": "3"}),
        pod("s1-driver", "s1", on="n1", cpu=1),
    )


def test_of_two_neighbours_only_as_many_are_admitted_as_leave_the_executors_their_share() -> None:
    world = spark()
    for name in ("a", "b"):
        world.add(group(name, 1, phase="Pending", queue="test"), pod(f"{name}-0", name, cpu=1))
    assert set(world.step(2).binds) | {"default/a-0"} == {"default/a-0"}
    assert (phases(world)["a"], phases(world)["b"]) == ("Running", "Pending")


def test_executors_come_before_a_driver_that_was_admitted_too() -> None:
    """Volcano puts jobs that have their minimum last."""
    world = spark(cpu=2).add(pod("s1-exec", "s1", cpu=1))
    world.add(group("s2", 1, queue="test", minResources={"cpu": "1"}), pod("s2-driver", "s2", cpu=1))
    assert world.step().binds == {"default/s1-exec": "n1"}


def test_pods_beyond_min_resources_come_last_as_ever() -> None:
    world = spark(cpu=4).add(*(pod(f"s1-exec-{index}", "s1", cpu=1) for index in range(3)))
    world.add(group("s2", 1, queue="test", minResources={"cpu": "1"}), pod("s2-driver", "s2", cpu=1))
    assert set(world.step().binds) == {"default/s1-exec-0", "default/s1-exec-1", "default/s2-driver"}


def test_on_a_full_cluster_jobs_without_min_resources_are_admitted_as_ever_if_nothing_is_owed() -> None:
    world = World(policy=policy_named("preset:full").source).add(node("n1"))
    world.add(group("old", 1, phase="Running"), pod("old-0", "old", on="n1", cpu=4))
    for name in ("a", "b"):
        world.add(group(name, 1, phase="Pending"), pod(f"{name}-0", name, cpu=1))
    world.step()
    assert (phases(world)["a"], phases(world)["b"]) == ("Inqueue", "Inqueue")


def test_a_job_of_higher_priority_is_not_held_back_for_running_jobs() -> None:
    world = spark()
    world.job("urgent", cpu=3, priority=9, queue="test")
    assert world.step().binds == {"default/urgent-0": "n1"}


@pytest.mark.parametrize("policy", [*OURS, *PRESETS])
def test_gangs_without_min_resources_that_wait_keep_out_no_job_with_min_resources(policy: str) -> None:
    """The gate hardly limits how many such gangs are admitted; a job that fits beside them is admitted, too."""
    world = World(policy=policy_named(policy).source).add(node("n1", cpu=4), node("n2", cpu=4))
    world.add(group("old", 1, phase="Running"), pod("old-0", "old", on="n1", cpu=4))
    for name in ("a", "b", "c"):
        world.add(group(name, 2, phase="Pending"))
        world.add(*(pod(f"{name}-{index}", name, cpu=4) for index in range(2)))
    world.step()
    world.add(group("new", 1, phase="Pending", minResources={"cpu": "1"}), pod("new-0", "new", cpu=1))
    assert world.step().binds == {"default/new-0": "n2"}


@pytest.mark.parametrize("minimum", [{}, {"minResources": {"cpu": "1"}}])
@pytest.mark.parametrize("preset", ["basic", "high-priority", "full", "fair-share"])
def test_what_the_share_keeps_from_executors_does_not_stay_idle(
    preset: str, minimum: dict[str, object]
) -> None:
    """Each of two queues deserves one of two CPUs: the driver has that of its queue, the other queue wants its own."""
    world = World(policy=policy_named(f"preset:{preset}").source).add(node("n1", cpu=2))
    world.add(
        queue("other"),
        group("s1", 1, phase="Running", minResources={"cpu": "2"}),
        pod("s1-driver", "s1", on="n1", cpu=1),
        pod("s1-exec", "s1", cpu=1),
        group("new", 1, phase="Pending", queue="other", **minimum),
        pod("new-0", "new", cpu=1),
    )
    assert world.step(3).binds == {"default/new-0": "n1"}
