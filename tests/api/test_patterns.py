"""Patterns have Go's syntax and meaning, and match in linear time."""

import re
import time
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from stromboli.api.patterns import MAX_PATTERN, MAX_STEPS, PatternError, matches, matching, pattern_error
from stromboli.api.schemas.crd_schemas import from_crd
from stromboli.api.schemas.normalization import normalize
from stromboli.api.schemas.volcano_definitions import volcano_definitions


@pytest.mark.parametrize(
    "pattern",
    [
        r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$",
        r"^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$",
        r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$",
        r"^([0-9]+(\.[0-9]+)?(ns|us|ms|s|m|h))+$",
        r"^(https?://)?[\w.-]+(:\d+)?(/.*)?$",
        r"^[[:alpha:]]+$",
        r"^\p{Greek}+$",
        r"(a+)+$",
    ],
)
def test_what_people_write_is_taken(pattern: str) -> None:
    assert pattern_error(pattern) == ""


@pytest.mark.parametrize(
    ("pattern", "why"),
    [
        ("(", "error parsing regexp: missing closing ): `(`"),
        ("[a", "error parsing regexp: missing closing ]: `[a`"),
        ("a**", "error parsing regexp: invalid nested repetition operator: `**`"),
        ("*", "error parsing regexp: missing argument to repetition operator: `*`"),
        ("a{1001}", "error parsing regexp: invalid repeat count: `{1001}`"),
        ("(?=a)", "error parsing regexp: invalid or unsupported Perl syntax: `(?=`"),
        (r"\1", r"error parsing regexp: invalid escape sequence: `\1`"),
        (r"a\\\C", r"error parsing regexp: invalid escape sequence: `\C`"),
    ],
)
def test_what_go_refuses_is_refused_with_its_words(pattern: str, why: str) -> None:
    assert pattern_error(pattern) == why


def test_a_pattern_is_bounded_in_bytes_and_in_memory() -> None:
    assert "it has more than 4096 bytes" in pattern_error("a" * (MAX_PATTERN + 1))
    assert "bytes of memory" in pattern_error(r"\pL{1000}")


@pytest.mark.parametrize("pattern", ["(a|aa)+$", "^a*a*a*a*a*a*$", "(a+)+$", "(x+x+)+y", "(.*a){20}$"])
def test_a_pattern_that_backtracks_is_matched_in_milliseconds(pattern: str) -> None:
    schema = from_crd(
        {
            "type": "object",
            "properties": {"spec": {"type": "string", "pattern": pattern}},
            "x-kubernetes-preserve-unknown-fields": True,
        }
    )
    started = time.process_time()
    problems = normalize({"spec": "a" * 100_000 + "b"}, schema).problems
    assert time.process_time() - started < 1
    assert [problem.field for problem in problems] == ["spec"]


def test_a_large_pattern_on_much_text_is_refused_in_time() -> None:
    """Linear in the text and in the pattern: a megabyte for thousands of instructions would take ten seconds."""
    pattern, text = "[a-z]*[^z]{900}x", "xa" * 5000
    with pytest.raises(PatternError, match=f"exceed {MAX_STEPS}; shorten the text"):
        matches(pattern, text)
    schema = from_crd(
        {
            "type": "object",
            "properties": {"spec": {"type": "array", "items": {"type": "string", "pattern": pattern}}},
        }
    )
    started = time.process_time()
    problems = normalize({"spec": ["xa" * 500] * 1000}, schema).problems
    assert time.process_time() - started < 3
    assert "shorten the text or simplify the pattern" in problems[-1].message


def test_the_matches_of_an_object_are_bounded_together() -> None:
    with matching(), pytest.raises(PatternError):
        any(matches("[a-z]*[^z]{900}x", "xa" * 100) for _ in range(100))
    assert not matches("[a-z]*[^z]{900}x", "xa" * 100)


def test_what_is_no_unicode_text_matches_without_an_error() -> None:
    assert matches("^.$", "\ud800")
    assert pattern_error("\ud800") == "error parsing regexp: invalid UTF-8"


def patterns(node: Any) -> list[str]:
    if isinstance(node, dict):
        own = [node["pattern"]] if isinstance(node.get("pattern"), str) else []
        return own + [pattern for value in node.values() for pattern in patterns(value)]
    return [pattern for value in node for pattern in patterns(value)] if isinstance(node, list) else []


def test_volcanos_patterns_are_taken() -> None:
    all_patterns = patterns(list(volcano_definitions()))
    assert all_patterns
    assert {pattern_error(pattern) for pattern in all_patterns} == {""}


@given(st.text(alphabet="ab()[]{}*+?|^$.\\d-,1", max_size=20))
def test_any_text_is_judged(pattern: str) -> None:
    if pattern_error(pattern) == "":
        matches(pattern, "ab1")


ATOMS = st.sampled_from(["a", "b", "c", ".", "[ab]", "[^a]", "[a-c]", r"\d", r"\w", "1", "-"])
SIMPLE = st.recursive(
    ATOMS,
    lambda inner: st.one_of(
        st.tuples(inner, inner).map("".join),
        st.tuples(inner, inner).map(lambda pair: f"(?:{pair[0]}|{pair[1]})"),
        st.tuples(inner, st.sampled_from(["*", "+", "?", "{2}", "{1,2}", "*?"])).map(
            lambda pair: f"(?:{pair[0]}){pair[1]}"
        ),
        inner.map(lambda pattern: f"^(?:{pattern})"),
        inner.map(lambda pattern: f"(?:{pattern})$"),
    ),
    max_leaves=6,
)


@given(SIMPLE, st.text(alphabet="abc1-", max_size=12))
@example("(?:a|aa)*$", "aaab")
def test_simple_patterns_mean_what_they_mean_in_python(pattern: str, text: str) -> None:
    assert matches(pattern, text) == (re.search(pattern.replace("$", r"\Z"), text) is not None)
