"""Sets of CPUs as text and as bits."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stromboli.model.cpus.cpu_topology import MAX_CPUS, cpu_numbers, format_cpu_set, parse_cpu_set


@given(st.sets(st.integers(0, 200)))
def test_a_set_is_the_same_after_it_was_written_and_read(numbers: set[int]) -> None:
    bits = sum(1 << number for number in numbers)

    assert parse_cpu_set(format_cpu_set(bits)) == bits
    assert list(cpu_numbers(bits)) == sorted(numbers)


def test_neighbours_are_written_as_ranges() -> None:
    assert format_cpu_set(0b1_0000_1111) == "0-3,8"
    assert format_cpu_set(0) == ""


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("0-1000000000", "is no CPU number"),
        ("0-99999", f"99999 is above {MAX_CPUS - 1}"),
        ("3-1", "ends before it begins"),
        ("a", "'a' is no CPU number"),
        ("0, 1", "' 1' is no CPU number"),
        ("-1", "'-1' is no CPU number"),
        ("1,,2", "'' is no CPU number"),
        ("0," * 40_000 + "0", "is longer than"),
        ("٣", "is no CPU number"),
    ],
)
def test_a_text_that_is_no_set_of_cpus_is_refused_with_its_reason(text: str, wrong: str) -> None:
    with pytest.raises(ValueError, match=wrong):
        parse_cpu_set(text)
