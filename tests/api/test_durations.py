"""Durations as users write them for simulated nodes."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stromboli.api.durations import FOREVER, BadDuration, Duration, longest, parse_duration


@pytest.mark.parametrize(
    ("text", "span"),
    [
        ("30s", Duration(30, 30)),
        ("1h30m", Duration(5400, 5400)),
        ("30", Duration(30, 30)),
        ("10s..1m", Duration(10, 60)),
        ("exp(30s)", Duration(30, 30, True)),
        ("exp(0s)", Duration(0, 0)),
        ("forever", FOREVER),
    ],
)
def test_a_span_is_read(text, span):
    assert parse_duration(text) == span


@pytest.mark.parametrize("text", ["", "x", "-5s", "60s..10s", "exp()", "10s..", "1e999", "nan"])
def test_a_span_that_is_none_is_explained(text):
    with pytest.raises(BadDuration):
        parse_duration(text)


@given(st.text(max_size=20), st.text(max_size=5))
def test_whatever_is_a_span_has_a_length(text, seed):
    try:
        seconds = parse_duration(text).sample(seed)
    except BadDuration:
        return
    assert seconds >= 0
    assert not math.isnan(seconds)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90", 90), ("30s..2m", 120), ("forever", math.inf), ("exp(30s)", None), ("soon", None), ("", None)],
)
def test_the_longest_that_a_span_comes_to_is_known_unless_it_has_no_bound(
    text: str, seconds: float | None
) -> None:
    assert longest(text) == seconds
