"""When a pod counts as active, ready and available."""

from __future__ import annotations

import pytest

from stromboli.api.pods import is_active, is_available, is_ready, is_terminating, next_available
from tests.controllers.workloads.replicated_objects import NOW, at, pod


def test_a_finished_pod_is_neither_active_nor_terminating() -> None:
    ended, going = pod("a", phase="Failed"), pod("b", deletionTimestamp=at(0))
    assert (is_active(ended), is_terminating(ended)) == (False, False)
    assert (is_active(going), is_terminating(going)) == (False, True)
    assert is_active(pod("c"))


@pytest.mark.parametrize(
    ("ready", "wait", "available"), [(None, 0, False), (0, 0, True), (5, 10, False), (10, 10, True)]
)
def test_a_pod_is_available_once_it_was_ready_for_long_enough(
    ready: float | None, wait: int, available: bool
) -> None:
    made = pod("a", ready=ready)
    assert is_ready(made) == (ready is not None)
    assert is_available(made, wait, NOW) == available


def test_the_next_look_is_when_the_first_pod_becomes_available() -> None:
    pods = [pod("a", ready=2), pod("b", ready=7), pod("c", ready=20), pod("d")]
    assert next_available(pods, 10, NOW) == 3
    assert next_available(pods, 0, NOW) is None
    assert next_available(pods[2:], 10, NOW) is None
