"""Numbers that may be percentages."""

import pytest

from stromboli.api.int_or_percent import scaled_value


@pytest.mark.parametrize(
    ("value", "total", "up", "down"),
    [
        (3, 10, 3, 3),
        ("25%", 10, 3, 2),
        ("0%", 10, 0, 0),
        ("100%", 7, 7, 7),
        ("1%", 1, 1, 0),
        ("x", 10, 0, 0),
        ("-5%", 10, 0, 0),
        ("25", 10, 0, 0),
        (None, 10, 0, 0),
    ],
)
def test_a_percentage_is_of_the_total_and_rounded_as_asked(
    value: object, total: int, up: int, down: int
) -> None:
    assert scaled_value(value, total, round_up=True) == up
    assert scaled_value(value, total, round_up=False) == down


def test_a_huge_percentage_costs_nothing() -> None:
    assert scaled_value("9" * 100_000 + "%", 1, round_up=True) == 10**7
