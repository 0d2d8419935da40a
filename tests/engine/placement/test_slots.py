"""How many times a request fits into what nodes have free."""

from __future__ import annotations

import numpy as np

from stromboli.engine.placement.node_fit import MAX_SLOTS, slots_of


def test_the_scarcest_resource_of_a_node_decides_and_none_is_below_zero() -> None:
    free = np.array([[8, 3, -1], [10, 10, 10]])
    assert slots_of({0: 2, 1: 5}, free).tolist() == [2, 1, 0]
    assert slots_of({0: 2, 1: 5}, free, most=1).tolist() == [1, 1, 0]


def test_what_is_not_asked_for_does_not_limit() -> None:
    free = np.array([[0, 4], [10, 10]])
    assert slots_of({0: 0, 1: 5}, free).tolist() == [2, 2]
    assert slots_of({}, free, most=7).tolist() == [7, 7]


def test_sums_over_many_nodes_do_not_wrap_around() -> None:
    free = np.full((1, 1000), 2**62)
    assert slots_of({0: 1}, free).sum() == 1000 * MAX_SLOTS
