"""How many times a request fits into what nodes have free."""

from __future__ import annotations

import numpy as np
import pytest

from stromboli.engine.placement.node_fit import MAX_SLOTS, SlotCount, slots_of
from stromboli.testing import World
from tests.manifests import pod


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


def test_no_node_has_a_slot_for_a_resource_that_no_node_was_ever_counted_for() -> None:
    assert slots_of({0: 1, 5: 1}, np.full((2, 3), 10)).tolist() == [0, 0, 0]


@pytest.mark.parametrize("seed", range(20))
def test_a_count_that_follows_changes_of_nodes_is_that_of_counting_anew(seed: int) -> None:
    chance = np.random.default_rng(seed)
    shape = World(nodes="n1 cpu=1").add(pod("t", cpu=2, memory="3")).task("t").shape
    free = chance.integers(-5_000, 20_000, (len(shape.dense(8)), 10))
    count = SlotCount(shape, free)
    for _ in range(5):
        rows = chance.choice(10, size=chance.integers(0, 4), replace=False)
        free[:, rows] = chance.integers(-5_000, 20_000, (len(free), len(rows)))
        count.update(rows, free[:, rows])
        afresh = SlotCount(shape, free)
        assert (count.total, count.by_row.tolist()) == (afresh.total, afresh.by_row.tolist())
