"""Indexes of an array, as Slurm writes them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stromboli.submission.bad_request import BadRequest
from stromboli.submission.job_arrays import MAX_ELEMENTS, parse_array


@pytest.mark.parametrize(
    ("text", "indexes", "at_once", "step"),
    [
        ("0-3", (0, 1, 2, 3), 0, 1),
        ("7", (7,), 0, 1),
        ("1,3,5", (1, 3, 5), 0, 2),
        ("1,2,5", (1, 2, 5), 0, 0),
        ("0-15:4", (0, 4, 8, 12), 0, 4),
        ("0-9%3", tuple(range(10)), 3, 1),
        ("5,1-2%1", (1, 2, 5), 1, 0),
        ("3,3,3", (3,), 0, 1),
    ],
)
def test_arrays_are_read(text: str, indexes: tuple[int, ...], at_once: int, step: int) -> None:
    array = parse_array(text)
    assert (array.indexes, array.at_once, array.step) == (indexes, at_once, step)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "a",
        "3-1",
        "0-9%",
        "0-9%0",
        "0-9%x",
        "1--2",
        "-1",
        "0-9:0",
        "0-999999999",
        "1,,2",
        "0-10000",
        "٣",
        "9" * 99,
    ],
)
def test_what_is_no_array_is_refused(text: str) -> None:
    with pytest.raises(BadRequest, match="--array"):
        parse_array(text)


def test_only_an_array_from_zero_without_gaps_is_numbered_like_its_pods() -> None:
    assert parse_array("0-4").counts_from_zero
    assert parse_array("0").counts_from_zero
    assert not any(parse_array(text).counts_from_zero for text in ("1-4", "0-8:2", "0,2"))


@given(st.sets(st.integers(0, 5000), min_size=1, max_size=200), st.integers(0, 50))
def test_any_list_of_indexes_comes_back(indexes: set[int], at_once: int) -> None:
    text = ",".join(map(str, indexes)) + (f"%{at_once}" if at_once else "")
    array = parse_array(text)
    assert (array.indexes, array.at_once) == (tuple(sorted(indexes)), at_once)


@given(st.text(max_size=60))
def test_no_text_does_harm(text: str) -> None:
    try:
        assert 1 <= len(parse_array(text).indexes) <= MAX_ELEMENTS
    except BadRequest as error:
        assert str(error).isprintable()
