"""Patterns that people write are taken, patterns that never end are not."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stromboli.api.schemas.regex_patterns import MAX_TEXT, matches, pattern_error
from stromboli.api.schemas.volcano_definitions import volcano_definitions


@pytest.mark.parametrize(
    "pattern",
    [
        r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$",
        r"^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$",
        r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$",
        r"^([0-9]+(\.[0-9]+)?(ns|us|ms|s|m|h))+$",
        r"^(https?://)?[\w.-]+(:\d+)?(/.*)?$",
        r"^[0-9]+((\.[0-9]+)?%)?$",
        r"^(a|b)*$",
    ],
)
def test_what_people_write_is_taken(pattern: str) -> None:
    assert pattern_error(pattern) == ""


@pytest.mark.parametrize(
    "pattern", ["(a+)+$", "^(a*)*$", "(x|a+)+b", "((a+)?b?)*c", "(?:[a-z]+)*!", "((a{1,99})){1,99}b"]
)
def test_what_could_take_for_ever_is_refused(pattern: str) -> None:
    assert "must not repeat what may repeat itself" in pattern_error(pattern)


def test_what_is_no_pattern_or_too_long_is_refused() -> None:
    assert pattern_error("(") == "must be a valid regular expression"
    assert "must not have sets in sets" in pattern_error("^[[:alpha:]]+$")
    assert "no longer than" in pattern_error("a" * 10_000)
    assert not matches("^a*$", "a" * (MAX_TEXT + 1))


def patterns(node: Any) -> list[str]:
    if isinstance(node, dict):
        own = [node["pattern"]] if isinstance(node.get("pattern"), str) else []
        return own + [pattern for value in node.values() for pattern in patterns(value)]
    return [pattern for value in node for pattern in patterns(value)] if isinstance(node, list) else []


def test_volcanos_patterns_are_taken() -> None:
    all_patterns = patterns(volcano_definitions())
    assert all_patterns
    assert {pattern_error(pattern) for pattern in all_patterns} == {""}


@given(st.text(alphabet="ab()[]{}*+?|^$.\\d-,1", max_size=20))
def test_any_text_is_judged(pattern: str) -> None:
    if pattern_error(pattern) == "":
        matches(pattern, "ab1")
