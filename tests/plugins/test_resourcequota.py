"""ResourceQuotas of a namespace at the gate of the queue."""

from typing import Any

from stromboli.testing import World
from tests.manifests import events, group, phases, policy, quota

GATE = policy("enqueue", "resourcequota")


def _world(*objects: dict[str, Any]) -> World:
    return World(policy=GATE).add(*objects)


def test_jobs_admitted_in_this_cycle_count_until_it_closes() -> None:
    jobs = [group(f"j{index}", 1, minResources={"cpu": "600m"}, phase="") for index in range(2)]
    world = _world(quota("q", {"cpu": "1.1"}, {}), *jobs)
    outcome = world.step()
    assert phases(world) == {"j0": "Inqueue", "j1": "Pending"}
    assert events(outcome) == {
        "j1": "resource quota insufficient, requested: cpu=600m, used: , limited: cpu=1.1"
    }
    world.step()
    assert phases(world)["j1"] == "Inqueue"


def test_names_the_scheduler_does_not_count_are_limited_too() -> None:
    least = {"requests.cpu": "2", "count/pods": "3", "pods": "3", "limits.memory": "1Gi"}
    world = _world(
        quota("q", {"requests.cpu": "4", "count/pods": "5"}, {"requests.cpu": "3", "count/pods": "3"}),
        group("j", 1, minResources=least, phase=""),
    )
    text = events(world.step())["j"]
    assert text == (
        "resource quota insufficient, requested: count/pods=3,requests.cpu=2,"
        " used: count/pods=3,requests.cpu=3, limited: count/pods=5,requests.cpu=4"
    )


def test_quantities_are_exact_and_a_full_quota_is_fine() -> None:
    world = _world(
        quota("q", {"cpu": "300m"}, {"cpu": "0.1"}),
        group("fits", 1, minResources={"cpu": "0.2"}, phase=""),
        group("over", 1, minResources={"cpu": "1n"}, phase=""),
    )
    world.step()
    assert phases(world) == {"fits": "Inqueue", "over": "Pending"}


def test_every_quota_of_the_namespace_counts_and_no_other() -> None:
    world = _world(
        quota("a", {"cpu": "8"}, {}),
        quota("b", {"memory": "1Gi"}, {}),
        quota("other", {"cpu": "0"}, {}, namespace="team"),
        group("j", 1, minResources={"cpu": "1", "memory": "2Gi"}, phase=""),
        group("free", 1, minResources={"cpu": "1", "nvidia.com/gpu": "100"}, phase=""),
        group("elsewhere", 1, namespace="lab", minResources={"cpu": "100"}, phase=""),
    )
    world.step()
    assert phases(world) == {"j": "Pending", "free": "Inqueue", "elsewhere": "Inqueue"}


def test_a_job_without_minimum_resources_is_admitted() -> None:
    world = _world(quota("q", {"pods": "0"}, {}), group("j", 1, phase=""))
    world.step()
    assert phases(world) == {"j": "Inqueue"}


def test_a_quota_that_changes_or_goes_is_noticed() -> None:
    world = _world(quota("q", {"cpu": "1"}, {}), group("j", 1, minResources={"cpu": "2"}, phase=""))
    world.step()
    assert phases(world) == {"j": "Pending"}
    world.remove(quota("q", {}, {})).step()
    assert phases(world) == {"j": "Inqueue"}
