"""What each status of a task weighs and which classes it belongs to (spec 01 2.3, 5.1)."""

import pytest

from stromboli.model.status import (
    ALLOCATED_CLASS,
    ON_NODE,
    READY_CLASS,
    SCHEDULED_CLASS,
    VALID_CLASS,
    WEIGHT,
    Status,
)

CLASSES = {
    "allocated": (ALLOCATED_CLASS, "Allocated Binding Bound Running"),
    "ready": (READY_CLASS, "Allocated Binding Bound Running Succeeded"),
    "valid": (VALID_CLASS, "Pending Pipelined Allocated Binding Bound Running Succeeded"),
    "scheduled": (SCHEDULED_CLASS, "Running Bound Failed Succeeded"),
    "on a node": (ON_NODE, "Allocated Pipelined Binding Bound Running Releasing Unknown"),
}


@pytest.mark.parametrize("name", CLASSES)
def test_classes_are_those_of_the_specification(name: str) -> None:
    flags, members = CLASSES[name]
    assert {status.title for status in Status if flags[status]} == set(members.split())


@pytest.mark.parametrize(
    ("statuses", "weight"),
    [
        ("Allocated Binding Bound Running Unknown", (1, 0, 0)),
        ("Releasing", (1, 1, 0)),
        ("Pipelined", (0, 0, 1)),
        ("Pending Succeeded Failed", (0, 0, 0)),
    ],
)
def test_weight_follows_from_the_status_alone(statuses: str, weight: tuple[int, int, int]) -> None:
    for title in statuses.split():
        assert tuple(WEIGHT[Status[title.upper()]]) == weight
