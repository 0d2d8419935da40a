"""Surge and unavailability, as numbers and percentages."""

from __future__ import annotations

import pytest

from stromboli.controllers.workloads.deployment.rollout_limits import (
    max_surge,
    max_unavailable,
    noted_number,
    size_annotations,
)
from tests.controllers.workloads.replicated_objects import deployment, replica_set, rolling


@pytest.mark.parametrize(
    ("replicas", "surge", "unavailable", "expected"),
    [
        (10, 3, 2, (3, 2)),
        (10, "25%", "25%", (3, 2)),
        (3, "25%", "25%", (1, 0)),
        (1, "0%", "1%", (0, 1)),
        (2, 0, "30%", (0, 1)),
        (2, "1%", "0%", (1, 0)),
        (4, 0, 9, (0, 4)),
        (0, "25%", "25%", (0, 0)),
        (4, "100%", "100%", (4, 4)),
    ],
)
def test_surge_is_rounded_up_and_unavailability_down_and_never_are_both_none(
    replicas: int, surge: int | str, unavailable: int | str, expected: tuple[int, int]
) -> None:
    owner = deployment(replicas, strategy=rolling(surge, unavailable))
    assert (max_surge(owner), max_unavailable(owner)) == expected


def test_recreate_has_neither() -> None:
    owner = deployment(4, strategy={"type": "Recreate"})
    assert (max_surge(owner), max_unavailable(owner)) == (0, 0)


def test_a_replica_set_notes_the_size_of_its_deployment() -> None:
    noted = size_annotations(deployment(10, strategy=rolling(3, 0)))
    assert noted == {
        "deployment.kubernetes.io/desired-replicas": "10",
        "deployment.kubernetes.io/max-replicas": "13",
    }


@pytest.mark.parametrize(("text", "number"), [("7", 7), ("", None), ("-1", None), ("4294967296", None)])
def test_a_note_that_is_no_number_is_none(text: str, number: int | None) -> None:
    noted = replica_set("a", 1, desired_replicas=text)
    assert noted_number(noted, "deployment.kubernetes.io/desired-replicas") == number
