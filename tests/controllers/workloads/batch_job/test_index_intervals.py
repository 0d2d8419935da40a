"""Sets of indexes as intervals, against sets of numbers."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stromboli.controllers.workloads.batch_job.index_intervals import IndexIntervals

INDEXES = st.sets(st.integers(0, 30))


@pytest.mark.parametrize(
    ("indexes", "text"),
    [([], ""), ([3], "3"), ([1, 2], "1,2"), ([1, 2, 3], "1-3"), ([0, 2, 3, 5, 6, 7], "0,2,3,5-7")],
)
def test_intervals_are_written_as_kubernetes_writes_them(indexes: list[int], text: str) -> None:
    assert str(IndexIntervals.of(indexes)) == text


@pytest.mark.parametrize(
    ("text", "read"),
    [("3,1-2", "1-3"), ("1-9", "1-4"), ("7", ""), ("2-1,x,-,1-2-3,٣,+1,1", "1"), ("0-0", "0")],
)
def test_what_is_no_interval_or_too_large_is_left_out(text: str, read: str) -> None:
    assert str(IndexIntervals.parse(text, 5)) == read


@given(INDEXES, INDEXES, st.integers(0, 40))
def test_they_behave_as_sets(one: set[int], other: set[int], completions: int) -> None:
    first, second = IndexIntervals.of(one), IndexIntervals.of(other)
    assert first | second == IndexIntervals.of(one | other)
    assert first.count_common(second) == len(one & other)
    assert len(first) == len(one)
    assert [index for index in range(32) if index in first] == sorted(one)
    assert IndexIntervals.parse(str(first), 31) == first
    assert list(first.gaps(completions)) == [index for index in range(completions) if index not in one]
