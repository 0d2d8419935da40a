"""Arithmetic over resource amounts: the rules of the specification under their names (spec 01 1.2, 1.3)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stromboli.model.amounts import (
    add_to,
    dominant_share,
    excess,
    fits,
    fits_added,
    is_empty,
    lacking,
    less_equal,
    maximum,
    minimum_or_unlimited,
    minimum_or_zero,
    minus,
    plus,
    positive_dimensions,
    same,
    share,
    shift,
    some_fits,
    some_over,
    times,
    total_of,
)
from stromboli.model.dimensions import CPU, MEMORY, PODS, Dimensions, TooManyResources

GPU = 3
vectors = st.dictionaries(st.integers(0, 5), st.integers(0, 1000), max_size=4)


def test_what_becomes_zero_is_dropped() -> None:
    total = {CPU: 1000, GPU: 2}
    shift(total, {GPU: 2, MEMORY: 5}, -1)
    assert total == {CPU: 1000, MEMORY: -5}


@given(st.lists(vectors))
def test_adding_and_taking_off_again_leaves_nothing(parts: list[dict[int, int]]) -> None:
    total: dict[int, float] = {}
    for part in parts:
        shift(total, part)
    assert total == {dim: n for dim, n in total_of(parts).items() if n}
    for part in reversed(parts):
        shift(total, part, -1)
    assert total == {}


def test_plus_and_minus_leave_their_arguments_alone() -> None:
    left, right = {CPU: 3}, {CPU: 1, GPU: 1}
    assert plus(left, right) == {CPU: 4, GPU: 1}
    assert minus(left, right) == {CPU: 2, GPU: -1}
    assert (left, right) == ({CPU: 3}, {CPU: 1, GPU: 1})


def test_times_scales_every_dimension() -> None:
    assert times({CPU: 1000, GPU: 3}, 1.5) == {CPU: 1500, GPU: 4.5}


def test_less_equal_looks_at_cpu_memory_and_the_scalars_of_the_left_side() -> None:
    assert less_equal({CPU: 1}, {CPU: 1, GPU: 7})
    assert not less_equal({CPU: 1, GPU: 1}, {CPU: 1})
    assert not less_equal({}, {CPU: -1})
    assert less_equal({CPU: 1.05}, {CPU: 1})
    assert not less_equal({CPU: 1.2}, {CPU: 1})


def test_fits_compares_exactly_what_is_asked_for_and_never_pods() -> None:
    assert fits({CPU: 9, GPU: 1, PODS: 50}, {CPU: 1, GPU: 1}, {GPU: 1, PODS: 1})
    assert not fits({GPU: 1.05}, {GPU: 1}, {GPU: 1})
    assert lacking({CPU: 3, GPU: 2}, {CPU: 2, GPU: 1}, {CPU: 1, GPU: 1, MEMORY: 0}) == [CPU, GPU]


@given(vectors, vectors, vectors)
def test_fits_added_is_fits_of_the_sum(held: dict, request: dict, limit: dict) -> None:
    assert fits_added(held, request, limit) == fits(plus(held, request), limit, request)


@pytest.mark.parametrize(
    ("wanted", "limit", "request_", "expected"),
    [
        ({CPU: 5, MEMORY: 5}, {CPU: 4, MEMORY: 5}, {CPU: 1, MEMORY: 1}, True),  # one is enough
        ({CPU: 5, MEMORY: 5}, {CPU: 4, MEMORY: 5}, {CPU: 1}, False),  # but one that is asked for
        ({CPU: 5.05}, {CPU: 5}, {CPU: 1}, True),  # within the tolerance
        ({CPU: 5.2}, {CPU: 5}, {CPU: 1}, False),
        ({GPU: 0}, {}, {GPU: 1}, False),  # what is on neither side fits nowhere
        ({PODS: 1}, {PODS: 9}, {PODS: 1}, False),  # never pods
        ({}, {CPU: 5}, {}, False),
    ],
)
def test_some_fits_wants_one_dimension_that_is_asked_for(
    wanted: dict, limit: dict, request_: dict, expected: bool
) -> None:
    assert some_fits(wanted, limit, request_) is expected


@pytest.mark.parametrize(
    ("held", "limit", "request_", "expected"),
    [
        ({CPU: 5, MEMORY: 5}, {CPU: 4, MEMORY: 5}, {CPU: 1, MEMORY: 1}, True),  # one is enough
        ({CPU: 5, MEMORY: 5}, {CPU: 4, MEMORY: 5}, {MEMORY: 1}, False),  # but one that is asked for
        ({CPU: 5}, {CPU: 5}, {CPU: 1}, False),  # strictly
        ({CPU: 5.01}, {CPU: 5}, {CPU: 1}, True),  # no tolerance
        ({CPU: 5}, {CPU: 0}, {CPU: 1}, False),  # cpu of zero is no limit
        ({GPU: 5}, {GPU: 0}, {GPU: 1}, True),  # a scalar of zero is one
        ({GPU: 5}, {}, {GPU: 1}, False),
        ({PODS: 5}, {PODS: 1}, {PODS: 1}, False),  # never pods
    ],
)
def test_some_over_wants_one_dimension_that_is_asked_for_and_limited(
    held: dict, limit: dict, request_: dict, expected: bool
) -> None:
    assert some_over(held, limit, request_) is expected


def test_minimums_differ_in_what_a_missing_scalar_means() -> None:
    left, right = {CPU: 5, GPU: 2}, {CPU: 3, MEMORY: 1}
    assert minimum_or_unlimited(left, right) == {CPU: 3, MEMORY: 0, GPU: 2}
    assert minimum_or_zero(left, right) == {CPU: 3, MEMORY: 0, GPU: 0}
    assert minimum_or_unlimited(left, {}) == {CPU: 0, MEMORY: 0, GPU: 2}


def test_maximum_takes_the_union_and_drops_negative_scalars() -> None:
    assert maximum({CPU: -1, GPU: -2}, {CPU: -3, GPU: -1, 4: 5}) == {CPU: -1, 4: 5}


def test_excess_is_never_negative() -> None:
    assert excess({CPU: 5, MEMORY: 1}, {CPU: 2, MEMORY: 4}) == {CPU: 3}


def test_names_are_the_dimensions_that_are_there() -> None:
    assert positive_dimensions({CPU: 1, MEMORY: 0.05, PODS: 1}) == [CPU, PODS]


@pytest.mark.parametrize(
    ("amounts", "empty"),
    [({}, True), ({PODS: 1}, True), ({CPU: 0.05, PODS: 1}, True), ({CPU: 1}, False), ({GPU: 1000}, False)],
)
def test_pods_alone_are_nothing(amounts: dict, empty: bool) -> None:
    assert is_empty(amounts) is empty


@pytest.mark.parametrize(("part", "whole", "expected"), [(0, 0, 0), (3, 0, 1), (1, 4, 0.25), (5, 4, 1.25)])
def test_a_share_of_nothing_is_all_or_nothing(part: float, whole: float, expected: float) -> None:
    assert share(part, whole) == expected


def test_the_dominant_share_is_the_largest_over_what_the_whole_has() -> None:
    assert dominant_share({CPU: 1, MEMORY: 3, GPU: 9}, {CPU: 2, MEMORY: 4}) == 0.75


def test_same_takes_missing_cpu_and_memory_for_zero_but_not_scalars() -> None:
    assert same({MEMORY: 0}, {CPU: 0})
    assert not same({GPU: 0}, {})


def test_dimensions_keep_their_rows_and_read_cpu_memory_then_by_name() -> None:
    dims = Dimensions()
    assert dims.rows({"nvidia.com/gpu": 1, "cpu": 2, "a.com/b": 3}) == {3: 1, 0: 2, 4: 3}
    assert dims.named({4: 3, 2: 1, 0: 2, 3: 1}) == {"cpu": 2, "a.com/b": 3, "nvidia.com/gpu": 1, "pods": 1}


def test_too_many_resource_names_are_refused() -> None:
    dims = Dimensions()
    with pytest.raises(TooManyResources, match="more than 512 different resource names"):
        dims.rows({f"x.com/{number}": 1 for number in range(600)})


def test_a_count_that_becomes_zero_is_dropped() -> None:
    counts = {"a": 2}
    add_to(counts, "b", 1)
    add_to(counts, "a", -2)
    add_to(counts, "c", 0)
    assert counts == {"b": 1}
