"""Sums over domains equal sums over their nodes, whatever moved in between."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from stromboli.model.dimensions import CPU, MEMORY
from stromboli.model.node_columns import Columns
from stromboli.model.topology.domain import Domain
from stromboli.model.topology.domain_sums import SATURATED, DomainLookup, DomainSums
from stromboli.testing import World
from tests.number_of_examples import scaled


def columns_of(cpus: Sequence[int], memory: str = "0") -> Columns:
    nodes = "\n".join(f"n{number:02} cpu={cpu},memory={memory}" for number, cpu in enumerate(cpus))
    cluster = World(nodes=nodes).rehearsal.cluster
    cluster.settle()
    return cluster.columns


MANY = cache(lambda: columns_of([4] * 200))


def domain(name: str, rows: list[int]) -> Domain:
    return Domain(name, 1, rows=np.array(rows, dtype=np.int64))


def sums_of(domains: list[Domain], columns: Columns) -> DomainSums:
    return DomainSums(DomainLookup(domains, len(columns)), columns)


def naive(columns: Columns, domains: list[Domain]) -> dict[str, list[list[int]]]:
    values = {
        "allocatable": columns.allocatable,
        "free": np.maximum(columns.idle, 0),
        "free_in_future": np.maximum(columns.future_idle, 0),
        "leaving": columns.releasing - columns.pipelined,
    }
    return {
        name: [[int(of_dim[each.rows].sum()) for each in domains] for of_dim in of_nodes]
        for name, of_nodes in values.items()
    }


def test_empty_and_overlapping_domains_have_their_sums() -> None:
    columns = columns_of([1, 2, 4])
    domains = [
        domain("a-none", []),
        domain("b-all", [0, 1, 2]),
        domain("c-some", [1, 2]),
        domain("d-none", []),
    ]
    sums = sums_of(domains, columns)
    assert sums.free[CPU].tolist() == [0, 7000, 6000, 0]
    assert sums.lookup.place == {each: place for place, each in enumerate(domains)}


def test_a_node_that_holds_more_than_it_has_takes_nothing_off_the_others() -> None:
    world = World(nodes="n0 cpu=2\nn1 cpu=4")
    world.job("large", cpu=8, running_on="n0")
    columns = world.rehearsal.cluster.columns
    sums = sums_of([domain("both", [0, 1])], columns)
    assert (sums.free[CPU, 0], sums.free_in_future[CPU, 0]) == (4000, 4000)


def test_no_domains_and_no_nodes_have_empty_sums() -> None:
    assert sums_of([], columns_of([1])).free.shape[1] == 0
    assert sums_of([domain("none", [])], Columns(columns_of([1]).dims)).free.tolist() == [[0], [0], [0]]


@settings(max_examples=scaled(30))
@given(
    groups=st.lists(st.sets(st.integers(0, 199)), max_size=5),
    changes=st.lists(st.lists(st.tuples(st.integers(0, 199), st.integers(-9, 9)), max_size=6), max_size=5),
)
def test_sums_follow_every_change_of_nodes(
    groups: list[set[int]], changes: list[list[tuple[int, int]]]
) -> None:
    columns = MANY()
    domains = [domain(str(number), sorted(rows)) for number, rows in enumerate(groups)]
    sums = sums_of(domains, columns)
    for step in changes:
        for row, amount in step:
            columns.promise(row, {CPU: amount}, 1)
        for name, expected in naive(columns, domains).items():
            assert getattr(sums, name).tolist() == expected


def test_a_sum_that_exceeds_64_bits_is_saturated() -> None:
    columns = columns_of([1] * 200)
    sums = sums_of([domain("all", list(range(200))), domain("first", [0])], columns)
    for row in range(200):
        columns.promise(row, {MEMORY: 2**56}, 1)
    assert sums.leaving[MEMORY, 0] < -SATURATED // 2
    assert sums.leaving[MEMORY, 1] == -(2**56)
    for row in range(200):
        columns.promise(row, {MEMORY: 2**56}, -1)
    assert sums.leaving[MEMORY, 0] == 0


def test_sums_of_several_saturated_blocks_do_not_wrap_around() -> None:
    columns = columns_of([1] * 200, "64Pi")
    for row in range(200):
        columns.promise(row, {MEMORY: 2**56}, -1)
    assert sums_of([domain("all", list(range(200)))], columns).free_in_future[MEMORY, 0] >= SATURATED
