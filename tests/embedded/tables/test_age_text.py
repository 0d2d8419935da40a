import pytest
from hypothesis import given
from hypothesis import strategies as st

from stromboli.embedded.tables.age_text import ago, duration_text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (-5, "<invalid>"),
        (-0.5, "0s"),
        (0, "0s"),
        (119, "119s"),
        (120, "2m"),
        (125, "2m5s"),
        (599, "9m59s"),
        (600, "10m"),
        (179 * 60, "179m"),
        (180 * 60, "3h"),
        (3 * 3600 + 60, "3h1m"),
        (8 * 3600 + 60, "8h"),
        (47 * 3600, "47h"),
        (48 * 3600, "2d"),
        (49 * 3600, "2d1h"),
        (8 * 86400 + 3600, "8d"),
        (729 * 86400, "729d"),
        (731 * 86400, "2y1d"),
        (9 * 365 * 86400, "9y"),
    ],
)
def test_a_span_is_finer_the_shorter_it_is(seconds, text):
    assert duration_text(seconds) == text


@given(st.floats(0, 1e10))
def test_a_span_is_never_long_to_read(seconds):
    assert 2 <= len(duration_text(seconds)) <= 6


def test_what_is_no_time_has_no_age():
    assert [ago(text, 0.0) for text in (None, "", "soon", 5, "2024-01-01T00:00:00")] == ["<unknown>"] * 5
