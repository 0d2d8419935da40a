"""Sizes of ReplicaSets in a rollout, and when a Deployment is scaled."""

from __future__ import annotations

import pytest

from stromboli.controllers.workloads.deployment.revisions import Revisions
from stromboli.controllers.workloads.deployment.rollout_scaling import (
    is_scaling,
    new_size,
    old_sizes,
    scaled_sizes,
)
from tests.controllers.workloads.replicated_objects import deployment, replica_set, rolling


@pytest.mark.parametrize(
    ("present", "old", "expected"),
    [(0, 10, 3), (3, 8, 5), (5, 8, 5), (8, 0, 10), (10, 3, 10), (12, 0, 10), (0, 20, 0)],
)
def test_the_new_replica_set_grows_as_far_as_the_surge_allows(present: int, old: int, expected: int) -> None:
    owner = deployment(10, strategy=rolling(3, 2))
    new, former = replica_set("new", present), replica_set("old", old)
    assert new_size(owner, new, [former, new]) == expected


@pytest.mark.parametrize(
    ("new", "old", "expected"),
    [
        ((3, 0), [(10, 10)], {"o0": 8}),
        ((5, 0), [(8, 8)], {}),
        ((5, 3), [(8, 8)], {"o0": 5}),
        ((3, 0), [(10, 4)], {"o0": 8}),
        ((0, 0), [(8, 8), (5, 0)], {"o1": 0}),
        ((10, 10), [(1, 1), (2, 0)], {"o0": 0, "o1": 0}),
        ((10, 10), [(0, 0)], {}),
        ((3, 0), [(8, 10)], {}),
    ],
    ids=[
        "as many as may be unavailable",
        "not more while new pods are unavailable",
        "more as new pods become available",
        "unhealthy pods within the same limit",
        "unhealthy pods first, whatever their age",
        "all in the end",
        "nothing is left",
        "a status that lags behind does not count",
    ],
)
def test_old_replica_sets_shrink_as_far_as_availability_allows(
    new: tuple[int, int], old: list[tuple[int, int]], expected: dict[str, int]
) -> None:
    owner = deployment(10, strategy=rolling(3, 2))
    former = [
        replica_set(f"o{index}", replicas, available, age=100 - index)
        for index, (replicas, available) in enumerate(old)
    ]
    assert old_sizes(owner, Revisions(replica_set("new", *new), former)) == expected


def test_another_size_than_noted_is_a_scaling() -> None:
    noted = replica_set("a", 5, desired_replicas="5")
    assert not is_scaling(deployment(5), [noted])
    assert is_scaling(deployment(6), [noted])
    assert not is_scaling(deployment(6), [replica_set("a", 0, desired_replicas="5"), replica_set("b", 5)])


@pytest.mark.parametrize(
    ("sets", "replicas", "expected"),
    [
        ([("new", 5)], 8, {"new": 8}),
        ([("old", 5), ("new", 0)], 8, {"old": 8}),
        ([("old", 0), ("new", 0)], 8, {"new": 8}),
        ([("old", 0)], 8, {"old": 8}),
        ([], 8, {}),
        ([("old", 8), ("new", 5)], 30, {"old": 20, "new": 13}),
        ([("old", 8), ("new", 5)], 5, {"old": 5, "new": 3}),
        ([("old", 8), ("new", 5)], 0, {"old": 0, "new": 0}),
        ([("old", 5), ("mid", 4), ("new", 4)], 11, {"old": 6, "mid": 4, "new": 4}),
    ],
)
def test_a_deployment_that_is_scaled_keeps_the_proportions_of_its_replica_sets(
    sets: list[tuple[str, int]], replicas: int, expected: dict[str, int]
) -> None:
    owner = deployment(replicas, strategy=rolling(3, 2))
    made = [
        replica_set(name, count, age=10 - index, desired_replicas="10", max_replicas="13")
        for index, (name, count) in enumerate(sets)
    ]
    new = next((each for each in made if each.name == "new"), None)
    assert scaled_sizes(owner, Revisions(new, [each for each in made if each is not new])) == expected


def test_old_replica_sets_go_when_the_new_one_has_all_pods() -> None:
    new = replica_set("new", 4, desired_replicas="4")
    assert scaled_sizes(deployment(4), Revisions(new, [replica_set("old", 2)])) == {"old": 0}
