"""How many times a request fits into what nodes have free."""

from __future__ import annotations

import numpy as np
import pytest

from stromboli.engine.placement.node_fit import MAX_SLOTS, SlotCount, TaskSlots, slots_of
from stromboli.model.topology.domain_sums import RowGroups
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
    count = SlotCount(shape.request, free)
    for _ in range(5):
        rows = chance.choice(10, size=chance.integers(0, 4), replace=False)
        free[:, rows] = chance.integers(-5_000, 20_000, (len(free), len(rows)))
        count.update(rows, free[:, rows])
        afresh = SlotCount(shape.request, free)
        assert (count.total, count.by_row.tolist()) == (afresh.total, afresh.by_row.tolist())


def test_tasks_of_each_kind_count_as_if_there_were_no_others() -> None:
    free = np.array([[4, 2, 9]])
    large, small = SlotCount({0: 4}, free), SlotCount({0: 1}, free, np.array([True, True, False]))
    slots = TaskSlots([(large, 2), (small, 7)])
    pairs = RowGroups([np.array([0, 1]), np.array([1, 2]), np.array([], dtype=np.int64)], 3)
    assert (large.by_row.tolist(), small.by_row.tolist()) == ([1, 0, 2], [4, 2, 0])
    assert (slots.total, slots.enough) == (2 + 6, False)
    assert slots.within(pairs).tolist() == [1 + 6, 2 + 2, 0]
    assert slots.on(np.array([1, 2])) == 2 + 2
    slots.update(np.array([1, 2]), np.array([[3, 100]]))
    assert (slots.total, slots.enough) == (2 + 7, True)
    assert slots.within(pairs).tolist() == [1 + 7, 2 + 3, 0]
    assert TaskSlots([(large, 2)], spare=3).within(pairs).tolist() == [3 + 1, 3 + 2, 3]
    assert TaskSlots([]).within(pairs).tolist() == [0, 0, 0]
