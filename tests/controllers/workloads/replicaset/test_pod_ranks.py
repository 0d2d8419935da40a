"""Which pod of two goes first, by each of the criteria in their order."""

from __future__ import annotations

import pytest

from stromboli.api.types.controlled_pod import Pod
from stromboli.controllers.workloads.replicaset.pod_ranks import DELETION_COST, deletion_cost, pods_to_delete
from tests.controllers.workloads.replicated_objects import NOW, pod


def costly(cost: str) -> dict[str, str]:
    return {DELETION_COST: cost}


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (pod("a", node="", ready=9), pod("b", phase="Pending")),
        (pod("a", phase="Pending", ready=9), pod("b", phase="Unknown")),
        (pod("a", phase="Unknown", ready=9), pod("b")),
        (pod("a", annotations=costly("5")), pod("b", ready=9)),
        (pod("a", node="n2", ready=99, annotations=costly("-1")), pod("b", ready=9)),
        (pod("a", node="crowded", ready=9999), pod("b", ready=9)),
        (pod("a", ready=9), pod("b", ready=9999, restarts=7)),
        (pod("a", ready=9, restarts=2, age=9999), pod("b", ready=9, restarts=1)),
        (pod("a", ready=9, age=10), pod("b", ready=9, age=9999)),
        (pod("a", ready=8, age=10), pod("b", ready=9, age=9999)),
    ],
    ids=[
        "without a node",
        "pending",
        "unknown",
        "not ready",
        "of low deletion cost",
        "doubled up on its node",
        "ready for a shorter time",
        "restarted more often",
        "younger",
        "by age if ready for about as long",
    ],
)
def test_one_of_two_pods_goes_first(first: Pod, second: Pod) -> None:
    others = [pod("c", node="crowded")]
    for both in ([first, second], [second, first]):
        assert pods_to_delete(both, [*both, *others], 1, NOW) == [first]


def test_all_go_without_an_order() -> None:
    pods = [pod("a"), pod("b", node="")]
    assert pods_to_delete(pods, pods, 2, NOW) == pods


@pytest.mark.parametrize(
    ("text", "cost"),
    [
        ("7", 7),
        ("-7", -7),
        ("0", 0),
        ("", 0),
        ("07", 0),
        ("+7", 0),
        ("1e3", 0),
        ("--1", 0),
        ("2147483647", 2147483647),
        ("-2147483648", -2147483648),
        ("2147483648", 0),
        ("99999999999999999999", 0),
    ],
)
def test_a_deletion_cost_is_a_whole_number_of_32_bits(text: str, cost: int) -> None:
    assert deletion_cost(pod("a", annotations=costly(text))) == cost
