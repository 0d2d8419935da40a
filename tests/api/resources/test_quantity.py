"""Quantities are exact, in both directions."""

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stromboli.api.resources.quantity import (
    INT64_MAX,
    QuantityError,
    exact,
    format_bytes,
    format_count,
    format_milli,
    milli,
    whole,
)

SUFFIXES = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
BINARY = {"Ki": 1, "Mi": 2, "Gi": 3, "Ti": 4, "Pi": 5, "Ei": 6}
numbers = st.from_regex(
    r"[+-]?([0-9]{1,9}(\.[0-9]{0,6})?|\.[0-9]{1,6})", fullmatch=True, alphabet="+-.0123456789"
)


def in_range(value: Fraction) -> bool:
    return -(2**63) <= math.ceil(value) <= INT64_MAX


@given(numbers, st.sampled_from(sorted(SUFFIXES)))
def test_a_decimal_suffix_multiplies_by_a_power_of_ten(number: str, suffix: str) -> None:
    value = Fraction(number) * Fraction(10) ** SUFFIXES[suffix]
    assert exact(number + suffix) == value
    if in_range(value * 1000):
        assert whole(number + suffix) == math.ceil(value)
        assert milli(number + suffix) == math.ceil(value * 1000)


@given(numbers, st.sampled_from(sorted(BINARY)))
def test_a_binary_suffix_multiplies_by_a_power_of_1024(number: str, suffix: str) -> None:
    assert exact(number + suffix) == Fraction(number) * 1024 ** BINARY[suffix]


@given(numbers, st.sampled_from("eE"), st.integers(-30, 30))
def test_an_exponent_moves_the_point(number: str, e: str, exponent: int) -> None:
    assert exact(f"{number}{e}{exponent}") == Fraction(number) * Fraction(10) ** exponent


@given(st.integers(-(10**15), 10**15))
def test_an_integer_is_itself(number: int) -> None:
    assert whole(number) == number
    assert milli(number) == 1000 * number == milli(str(number))


@given(st.floats(-1e12, 1e12).filter(lambda number: number == 0 or abs(number) > 1e-60))
def test_a_float_means_what_it_prints(number: float) -> None:
    assert exact(number) == Fraction(repr(number))


@pytest.mark.parametrize(
    ("text", "thousandths", "units"),
    [
        ("100m", 100, 1),
        ("1.5", 1500, 2),
        ("0.0001", 1, 1),
        ("-0.0001", 0, 0),
        ("1E", 10**21, 10**18),
        ("1e3", 10**6, 1000),
        ("2Ki", 2048000, 2048),
        (0.1, 100, 1),
        ("5.", 5000, 5),
        (".5", 500, 1),
    ],
)
def test_fractions_round_up(text: str | float, thousandths: int, units: int) -> None:
    assert whole(text) == units
    if thousandths <= INT64_MAX:
        assert milli(text) == thousandths


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "1 ",
        "abc",
        "1x",
        "1KI",
        "1mi",
        "1e",
        "e3",
        "--1",
        "1.2.3",
        "0x10",
        "1_000",
        "\u0661",
        "NaN",
        "inf",
        "1i",
        ".",
    ],
)
def test_garbage_is_refused_by_name(text: str) -> None:
    with pytest.raises(QuantityError) as caught:
        milli(text)
    assert f'"{text}"' in str(caught.value)
    assert "expected a number" in str(caught.value)


@pytest.mark.parametrize(
    "value", [math.inf, -math.inf, math.nan, True, 2**63, 10**400, "8Ei", "1e19", "1e65", "1e-65"]
)
def test_what_no_machine_can_hold_is_refused(value: str | float) -> None:
    with pytest.raises(QuantityError, match="bad quantity"):
        whole(value)


def test_an_absurdly_long_text_is_cut_in_the_message() -> None:
    with pytest.raises(QuantityError) as caught:
        whole("9" * 10_000)
    assert "longer than 64 characters" in str(caught.value)
    assert len(str(caught.value)) < 200


@given(st.integers(-(10**17), 10**17))
def test_formatting_and_reading_back_changes_nothing(number: int) -> None:
    assert milli(format_milli(number)) == number
    assert whole(format_bytes(number)) == number
    assert whole(format_count(number)) == number


@pytest.mark.parametrize(
    ("milli_amount", "text"),
    [
        (0, "0"),
        (1, "1m"),
        (1500, "1500m"),
        (2000, "2"),
        (1_000_000, "1k"),
        (1_500_000, "1500"),
        (-2000, "-2"),
    ],
)
def test_thousandths_are_written_as_kubernetes_does(milli_amount: int, text: str) -> None:
    assert format_milli(milli_amount) == text


@pytest.mark.parametrize(
    ("amount", "text"),
    [(0, "0"), (999, "999"), (1000, "1k"), (1024, "1Ki"), (1536, "1536"), (3 * 2**30, "3Gi"), (2**60, "1Ei")],
)
def test_bytes_get_a_binary_suffix_where_it_is_exact(amount: int, text: str) -> None:
    assert format_bytes(amount) == text
